package e2e

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/certhook/certhook/tests/acmetest"
	"github.com/certhook/certhook/tests/haproxytest"
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

// A record that is written in another way and is legal all the same is enough, split and padded as it may be.
func TestPersistPaddedRecord(t *testing.T) {
	p := newPersisting(t, nil)
	uri := strings.TrimSpace(p.run(0, "register").Stdout)
	p.World.Add(lab.ProductionZone, fmt.Sprintf(`_validation-persist.p.example.com 300 TXT "  letsencrypt.org ;  policy = WildCard; foo=bar" "; ACCOUNTURI = %s ; persistUntil=+4102444800"`, uri))
	if r := p.run(0, "issue", "-d", "*.p.example.com"); r.Stderr != "" {
		t.Errorf("warnings without a cause: %v", r)
	}
	p.checkPersisted("p.example.com", "*.p.example.com")
}

// What the CA refuses is exit 1 in the CA's words, beside what the self-check has missed, and changes nothing.
func TestPersistRefused(t *testing.T) {
	p := newPersisting(t, map[string]string{"PROPAGATION_TIMEOUT": "", "PERSIST_BUDGET": "6"})
	uri := strings.TrimSpace(p.run(0, "register").Stdout)
	p.World.Add(lab.ProductionZone, fmt.Sprintf(`_validation-persist.p.example.com 300 TXT "letsencrypt.org; accounturi=%s"`, uri))
	r := p.run(1, "issue", "-d", "p.example.com", "-d", "*.p.example.com")
	for _, want := range []string{
		"lowered from 2m0s (PROPAGATION_TIMEOUT) to 3s", "it does not cover the wildcard", "expected: _validation-persist.p.example.com. TXT",
		"*.p.example.com by dns-persist-01 is refused: the CA says: ", "draft -01",
	} {
		if !strings.Contains(r.Stderr, want) {
			t.Errorf("it is not said that %q: %v", want, r)
		}
	}
	if r.Took > 6*time.Second {
		t.Errorf("took %v", r.Took)
	}
	if _, err := os.Stat(filepath.Join(lab.StateDir, "live")); !os.IsNotExist(err) {
		t.Errorf("there is a lineage: %v", err)
	}
}

// Certbot goes on with dns-01 beside it, by the same account: neither is in the other's way, and a name belongs to one.
func TestPersistBesideCertbot(t *testing.T) {
	s := newScene(t, lab.Options{}, lab.Target("svc.example.com", lab.AliasZone))
	p := &persisting{s.Lab, t}
	s.Delegate("svc.example.com")
	s.issue("svc.example.com")
	r := p.run(0, "register")
	if uri := strings.TrimSpace(r.Stdout); uri != s.Account() || !strings.Contains(r.Stderr, "certbot's account is used") {
		t.Errorf("registered %q beside certbot's %q: %v", uri, s.Account(), r)
	}
	if !strings.Contains(r.Stderr, "CLOUDFLARE_API_TOKEN: a DNS credential is configured") || strings.Contains(r.Stderr, lab.Token) {
		t.Errorf("no warning of the credential: %v", r)
	}
	lines := p.run(0, "records", "--zonefile", "-d", "p.example.com").Stdout
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, ";") {
			s.World.Add(lab.ProductionZone, strings.TrimSpace(line))
			defer s.World.Remove(lab.ProductionZone, strings.TrimSpace(line)) // the scene wants the zones clean
		}
	}
	p.run(0, "issue", "-d", "p.example.com")
	p.checkPersisted("p.example.com", "p.example.com")
	if r := p.run(10, "issue", "-d", "svc.example.com"); !strings.Contains(r.Stderr, "certbot has a lineage") {
		t.Errorf("a name of certbot's: %v", r)
	}
	if r := s.Renew(); r.Code != 0 {
		t.Errorf("certbot: %v", r)
	}
	p.run(0, "renew", "--force")
	s.checkLineage("svc.example.com", "svc.example.com")
}

// HAProxy serves what persist-issue gets, a new certificate and a renewed one.
func TestPersistServed(t *testing.T) {
	l, h := served(t, haproxytest.Options{})
	p := &persisting{l, t}
	names := []string{"svc.example.com", "*.svc.example.com"}
	p.run(0, "register")
	p.publish(names...)
	for range 2 {
		p.run(0, append([]string{"issue", "--force"}, dashD(names)...)...)
		if r := p.Run(lab.Hook("haproxy-apply")); r.Code != 0 {
			t.Fatalf("haproxy-apply: %v", r)
		}
		want := p.checkPersisted("svc.example.com", names...)
		if got := h.Served("www.svc.example.com")[0]; !got.Equal(want) {
			t.Errorf("HAProxy serves serial %X, the lineage has %X", got.SerialNumber, want.SerialNumber)
		}
	}
}

// A full disk is noticed before the CA is asked for a certificate, and what was there stays.
func TestPersistFullDisk(t *testing.T) {
	p := newPersisting(t, nil)
	p.run(0, "register")
	p.publish("p.example.com")
	p.run(0, "issue", "-d", "p.example.com")
	before, validations := p.checkPersisted("p.example.com", "p.example.com"), len(p.CA.Validations())
	mend := p.FillDisk(filepath.Join(lab.StateDir, "archive"))
	if r := p.run(10, "renew", "--force"); !strings.Contains(r.Stderr, "no space left") {
		t.Errorf("it is not said why: %v", r)
	}
	mend()
	if n := len(p.CA.Validations()); n > validations || !p.checkPersisted("p.example.com", "p.example.com").Equal(before) {
		t.Errorf("%d validations, or another certificate", n-validations)
	}
	p.run(0, "renew", "--force")
}

// An account gives way to another while orders go on, and none of them fails. The program is killed at each of its
// questions to the CA on the way, before it is answered, and started again.
func TestPersistRotation(t *testing.T) {
	p := newPersisting(t, nil)
	names := []string{"p.example.com", "*.p.example.com"}
	old := strings.TrimSpace(p.killAtEveryRequest("register").Stdout)
	p.publish(names...)
	p.run(0, append([]string{"issue"}, dashD(names)...)...)
	r := p.killAtEveryRequest("rotate", "--json")
	var told struct {
		From, To       string
		Done           bool
		Create, Remove []struct {
			Records []struct{ Name, Type, Value string }
		}
	}
	tell := func(r lab.Result) {
		t.Helper()
		told.Create, told.Remove = nil, nil
		if err := json.Unmarshal([]byte(r.Stdout), &told); err != nil {
			t.Fatalf("%v: %v", err, r)
		}
	}
	tell(r)
	if r.Code != 3 || told.From != old || told.To == old || told.Done || len(told.Create) != 1 {
		t.Fatalf("%+v", told)
	}
	next := told.To
	if r := p.run(0, "renew", "--force"); r.Stderr != "" {
		t.Errorf("warnings without a cause: %v", r)
	}
	for _, rec := range told.Create[0].Records {
		p.World.Add(lab.ProductionZone, fmt.Sprintf("%s 300 %s %s", rec.Name, rec.Type, rec.Value))
	}
	p.run(0, "renew", "--force")
	if r = p.killAtEveryRequest("rotate", "--json"); r.Code != 0 {
		t.Fatalf("rotate: %v", r)
	}
	tell(r)
	if told.From != old || told.To != next || !told.Done || len(told.Remove) != 1 {
		t.Fatalf("%+v", told)
	}
	p.run(0, "renew", "--force")
	for _, rec := range told.Remove[0].Records {
		p.World.Remove(lab.ProductionZone, fmt.Sprintf("%s 300 %s %s", rec.Name, rec.Type, rec.Value))
	}
	if r := p.run(0, "renew", "--force"); r.Stderr != "" {
		t.Errorf("warnings without a cause: %v", r)
	}
	if n := p.CA.Accounts(); n != 2 {
		t.Errorf("the CA has %d accounts, want two", n)
	}
}

// killAtEveryRequest runs the program as often as it takes to kill it at its first request to the CA, at its second one,
// and so on, before and after the CA has worked on it, and returns the first run that was not killed.
func (p *persisting) killAtEveryRequest(args ...string) lab.Result {
	p.t.Helper()
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			if r, killed := p.killAt(n, after, args...); !killed {
				return r
			}
		}
	}
}

// killAt runs the program and kills it at its nth request.
func (p *persisting) killAt(n int, after bool, args ...string) (r lab.Result, killed bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := lab.Command(ctx, lab.Hook("persist-issue"), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started, ended := make(chan struct{}), make(chan struct{})
	seen := 0
	p.CA.Observe(func(_ acmetest.Request, answered bool) {
		<-started
		if answered != after {
			return
		}
		if seen++; seen == n {
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	defer p.CA.Observe(nil)
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	close(ended)
	return lab.Result{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}, cmd.ProcessState.ExitCode() < 0
}
