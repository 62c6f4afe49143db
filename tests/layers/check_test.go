package layers

import (
	"strings"
	"testing"
)

// TestCheck proves on made-up graphs that the check can fail, and that it does not without reason.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		name  string
		graph graph
		want  []string // a part of each complaint, in order
	}{
		{"the way down", graph{
			"./cmd/auth-hook":           {"os", "./cmd/internal/setup", "./pkg/cli", "github.com/urfave/cli/v2"},
			"./cmd/internal/setup":      {"./pkg/config", "./pkg/challenge", "./pkg/provider/cloudflare"},
			"./pkg/challenge":           {"./pkg/journal", "./pkg/provider", "./pkg/fault"},
			"./pkg/config":              {"./pkg/resolver", "./pkg/dnsname"},
			"./pkg/cli":                 {"github.com/urfave/cli/v2", "./pkg/fault"},
			"./pkg/provider/cloudflare": {"./pkg/provider", "github.com/libdns/cloudflare"},
			"./pkg/propagation":         {"./pkg/authority", "./pkg/resolver"},
			"./tests/lab":               {"./tests/dnstest", "./pkg/config", "./pkg/challenge", "testing", "net/http/httptest"},
		}, nil},
		{"back up", graph{
			"./pkg/authority": {"./pkg/delegation"},
			"./pkg/dnsname":   {"./pkg/resolver"},
			"./pkg/journal":   {"./pkg/challenge"},
			"./pkg/challenge": {"./cmd/internal/setup"},
		}, []string{
			"./pkg/authority (leaf) imports ./pkg/delegation (domain)",
			"./pkg/challenge (use case) imports ./cmd/internal/setup (command)",
			"./pkg/dnsname (base) imports ./pkg/resolver (leaf)",
			"./pkg/journal (domain) imports ./pkg/challenge (use case)",
		}},
		{"use cases beside each other", graph{"./pkg/guide": {"./pkg/challenge"}}, []string{"./pkg/guide (use case) imports ./pkg/challenge (use case)"}},
		{"settings below the commands", graph{"./pkg/provider/cloudflare": {"./pkg/config"}, "./pkg/cli": {"./pkg/config"}}, []string{
			"./pkg/cli (edge) imports ./pkg/config (edge)",
			"./pkg/provider/cloudflare (domain) imports ./pkg/config (edge)",
		}},
		{"urfave outside", graph{"./pkg/guide": {"github.com/urfave/cli/v2"}, "./tests/demo": {"github.com/urfave/cli/v2"}}, []string{"./pkg/guide imports github.com/urfave/cli/v2"}},
		{"tests inside", graph{
			"./cmd/auth-hook": {"./tests/dnstest", "./pkg/provider/providertest", "testing"},
			"./pkg/authority": {"net/http/httptest", "testingother"},
		}, []string{
			"./cmd/auth-hook (command) imports ./tests/dnstest (test)",
			"./cmd/auth-hook (command) imports ./pkg/provider/providertest (test)",
			"./cmd/auth-hook imports testing, which is for tests only",
			"./pkg/authority imports net/http/httptest, which is for tests only",
		}},
		{"a credential in persist-issue", graph{
			"./cmd/persist-issue":  {"./pkg/issuance"},
			"./pkg/issuance":       {"./pkg/persist"},
			"./pkg/persist":        {"./pkg/provider/cloudflare"},
			"./cmd/auth-hook":      {"./cmd/internal/hooks"},
			"./cmd/internal/hooks": {"./pkg/provider"},
		}, []string{"cmd/persist-issue reaches pkg/provider: it must not"}},
		{"nobody's", graph{"./pkg/util": {}, "./internal/x": {}, "./cmd/a/b": {}}, []string{"./cmd/a/b is in no layer", "./internal/x is in no layer", "./pkg/util is in no layer"}},
		{"circles end", graph{"./pkg/persist": {"./pkg/caa"}, "./pkg/caa": {"./pkg/persist"}, "./cmd/persist-issue": {"./pkg/caa"}}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := check(tc.graph)
			for i, want := range tc.want {
				if i >= len(got) || !strings.HasPrefix(got[i], want) {
					t.Fatalf("complaints:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
				}
			}
			if len(got) > len(tc.want) {
				t.Errorf("more complaints than expected:\n%s", strings.Join(got, "\n"))
			}
		})
	}
}
