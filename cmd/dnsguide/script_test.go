package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"testing"

	"github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/tests/labca"
	"github.com/certhook/certhook/tests/scripttest"
)

func TestMain(m *testing.M) {
	scripttest.Main(m, map[string]cli.Program{"dnsguide": run, "certificate": certificate})
}

func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata")
}

// certificate prints a certificate for the names that it is given.
func certificate(_ context.Context, args, _ []string, _ io.Reader, stdout, stderr io.Writer) int {
	ca, err := labca.New()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return cli.ExitFailure
	}
	cert, err := ca.Issue(args[1:]...)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return cli.ExitFailure
	}
	_ = pem.Encode(stdout, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	return cli.ExitDone
}
