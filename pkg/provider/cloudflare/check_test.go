package cloudflare_test

import (
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

// checkProvider wants an error of kind Provider without a secret in it.
func checkProvider(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	if kind := fault.KindOf(err); kind != fault.Provider {
		t.Errorf("error of kind %d, want Provider: %v", kind, err)
	}
	checkSecret(t, err)
}

func checkUsage(t *testing.T, err error, ok bool) {
	t.Helper()
	switch {
	case ok && err != nil:
		t.Errorf("refused: %v", err)
	case !ok && fault.KindOf(err) != fault.Usage:
		t.Errorf("error %v, want one of kind Usage", err)
	case !ok && fault.HintOf(err) == "":
		t.Errorf("no hint with %v", err)
	}
	if err != nil {
		checkSecret(t, err)
	}
}

// checkSecret looks for the token, or most of it, in all that an operator or a log may see of an error.
func checkSecret(t *testing.T, err error) {
	t.Helper()
	if text := err.Error() + fault.HintOf(err); strings.Contains(text, token[5:20]) {
		t.Errorf("the token is in %q", text)
	}
}
