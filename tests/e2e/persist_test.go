package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/lab"
)

// persisting is a lab without any DNS credential.
type persisting struct {
	*lab.Lab
	t *testing.T
}

func newPersisting(t *testing.T, settings map[string]string) *persisting {
	t.Helper()
	all := map[string]string{"ACME_CHALLENGE_ALIAS": "", "CLOUDFLARE_API_TOKEN": "", "PROPAGATION_TIMEOUT": "3"}
	for key, value := range settings {
		all[key] = value
	}
	p := &persisting{lab.New(t, lab.Options{Settings: all}), t}
	t.Cleanup(func() {
		if calls := p.API.Calls(); len(calls) > 0 {
			t.Errorf("the DNS provider was called: %v", calls)
		}
	})
	return p
}

// run runs persist-issue and wants an exit code.
func (p *persisting) run(code int, args ...string) lab.Result {
	p.t.Helper()
	r := p.Run(lab.Hook("persist-issue"), args...)
	if r.Code != code {
		p.t.Fatalf("persist-issue %q: want exit code %d: %v", args, code, r)
	}
	return r
}

// publish puts the records that persist-issue prints into production, as an operator does.
func (p *persisting) publish(names ...string) {
	p.t.Helper()
	for line := range strings.Lines(p.run(0, append([]string{"records", "--zonefile"}, dashD(names)...)...).Stdout) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, ";") {
			p.World.Add(lab.ProductionZone, line)
		}
	}
}

func dashD(names []string) []string {
	var args []string
	for _, n := range names {
		args = append(args, "-d", n)
	}
	return args
}

// checkPersisted returns a lineage's certificate if it is for exactly these names, and nobody else may read its key.
func (p *persisting) checkPersisted(lineage string, names ...string) *x509.Certificate {
	p.t.Helper()
	dir := filepath.Join(lab.StateDir, "live", lineage)
	text, err := os.ReadFile(filepath.Join(dir, "fullchain.pem"))
	if err != nil {
		p.t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		p.t.Fatal(err)
	}
	if got, want := slices.Sorted(slices.Values(cert.DNSNames)), slices.Sorted(slices.Values(names)); !slices.Equal(got, want) {
		p.t.Errorf("lineage %q is for %q, want %q", lineage, got, want)
	}
	info, err := os.Stat(filepath.Join(dir, "privkey.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		p.t.Errorf("the key: %v, %v", info, err)
	}
	return cert
}

// One record, made by hand, is all that a name and its wildcard need; nothing here holds a DNS credential, and nothing
// touches DNS however often the certificate is renewed.
func TestPersistIssue(t *testing.T) {
	p := newPersisting(t, nil)
	names := []string{"p.example.com", "*.p.example.com"}
	uri := strings.TrimSpace(p.run(0, "register").Stdout)
	if again := strings.TrimSpace(p.run(0, "register").Stdout); again != uri || !strings.HasPrefix(uri, "https://") {
		t.Fatalf("registered %q, then %q", uri, again)
	}
	p.publish(names...)
	if got := p.World.TXT(lab.ProductionZone, "_validation-persist.p.example.com"); len(got) != 1 || !strings.Contains(got[0], uri) || !strings.Contains(got[0], "policy=wildcard") {
		t.Errorf("the records printed are %q, want one for both names and the account %s", got, uri)
	}
	before := p.World.Text(lab.ProductionZone)
	r := p.run(0, append([]string{"issue"}, dashD(names)...)...)
	for _, want := range []string{"draft -01", "experimental"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("the output lacks %q: %v", want, r)
		}
	}
	if r.Stderr != "" {
		t.Errorf("warnings without a cause: %v", r)
	}
	serials := map[string]bool{}
	for range 2 {
		serials[p.checkPersisted("p.example.com", names...).SerialNumber.String()] = true
		if r := p.run(0, "renew", "--force"); r.Stderr != "" {
			t.Errorf("warnings without a cause: %v", r)
		}
	}
	serials[p.checkPersisted("p.example.com", names...).SerialNumber.String()] = true
	if len(serials) != 3 {
		t.Errorf("serials %v, want three", serials)
	}
	if r := p.run(0, "renew"); !strings.Contains(r.Stdout, "not due") {
		t.Errorf("renewed before it is due: %v", r)
	}
	if r := p.run(0, append([]string{"issue"}, dashD(names)...)...); !strings.Contains(r.Stdout, "not due") {
		t.Errorf("issued again without need: %v", r)
	}
	if after := p.World.Text(lab.ProductionZone); after != before {
		t.Errorf("the zone was\n%s\nand is now\n%s", before, after)
	}
	for _, q := range p.World.Matching("_validation-persist.p.example.com", dns.TypeTXT) {
		if q.From.String() == lab.Resolver {
			t.Errorf("a public resolver was asked about the record: %v", q)
		}
	}
}
