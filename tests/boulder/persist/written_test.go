package persist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/boulder/core"
	"github.com/miekg/dns"

	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/persist"
	"github.com/certhook/certhook/pkg/resolver"
	"github.com/certhook/certhook/tests/boulder/numbers"
	"github.com/certhook/certhook/tests/boulder/oracle"
)

// Boulder accepts whatever record we write, of whatever CA and for whatever account, from the line as it goes into a
// zone file. There is one for four of the other questions: each takes a validation authority of its own.
func TestWrittenRecords(t *testing.T) {
	n, seed := numbers.FromEnv(t)
	const ratio = 4
	var written atomic.Uint64
	inTurn(t, n/ratio, func(boulder *oracle.Oracle, number uint64) error {
		w, ok := write(seed, number)
		if !ok {
			return nil
		}
		written.Add(1)
		answer, err := boulder.Persist(t.Context(), w, w.Validation)
		if err != nil {
			return err
		}
		if !answer.Allowed {
			return fmt.Errorf("BOULDER_SEED=%d: %q for %+v: %+v", seed, w.line, w.Validation, answer)
		}
		return nil
	})
	t.Logf("%d records were written", written.Load())
	if made := n / ratio; n >= numbers.Enough && (written.Load()*5 < made || written.Load()*5 > made*4) {
		t.Errorf("of %d records %d were written: not a fifth of each kind", made, written.Load())
	}
}

// written is a line that was written, and the validation that it is for.
type written struct {
	oracle.Validation
	line string
}

// Ask implements [oracle.Asker].
func (w written) Ask(_ context.Context, name string, qtype uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	rr, err := dns.NewRR(w.line)
	if err != nil {
		return nil, err
	}
	if resolver.Canonical(rr.Header().Name) == resolver.Canonical(name) && rr.Header().Rrtype == qtype {
		m.Answer = append(m.Answer, rr)
	}
	return m, nil
}

// write makes a record up and writes it, unless that is refused.
func write(seed, number uint64) (written, bool) {
	g := &generator{Rand: rand.New(rand.NewPCG(^seed, number))}
	w := written{}
	w.Domain = pick(g, "example.com", "svc.example.com", "a.b.example.co.uk", "*.example.com", strings.Repeat("a.", 100)+"example.com")
	w.Account = 1 + g.Int64N(1<<40)
	w.Now = time.Unix(1000000000+g.Int64N(4000000000), 0)
	issuer, err := persist.ParseIssuer(g.name())
	if err != nil {
		return w, false
	}
	w.Issuer = issuer
	w.Accounts = pick(g, "https://ca.example/acct/", "http://localhost:14000/my-account/", "https://[2001:db8::1]/a/", "urn:acct:", "HTTPS://CA/%41?a=b&c=",
		"https://ca.example/"+g.characters(g.IntN(700)))
	r := persist.Record{
		Issuer: issuer, Account: fmt.Sprint(w.Accounts, w.Account), Draft: persist.Draft01,
		Wildcard: g.IntN(2) == 0 || strings.HasPrefix(w.Domain, "*."),
	}
	if g.IntN(2) == 0 {
		r.Until = w.Now.Add(time.Duration(g.Int64N(1 << 60))).In(time.FixedZone("", 3600*g.IntN(12)))
		if g.IntN(4) == 0 {
			r.Until = w.Now
		}
	}
	w.line, err = r.Line(w.Domain)
	return w, err == nil
}

// characters makes text that may stand in a URI, or not.
func (g *generator) characters(n int) string {
	kind := pick(g, "abcABC019-._~", "abc%2F/?#[]@!$&'()*+,=:", `abc"\`, "ab ;\tc\x00\xff")
	if kind == `abc"\` || strings.Contains(kind, ";") {
		n %= 5
	}
	text := ""
	for range n {
		text += string(kind[g.IntN(len(kind))])
	}
	return strings.ReplaceAll(text, "%", "%25")
}

// name makes a name of a CA up, or something that is almost one.
func (g *generator) name() string {
	labels := []string{
		"letsencrypt", "pki", "CA", "a-b", "1", "xn--bcher-kva", "Bücher", "Bu\u0308cher", "straße", "ｌetters", "ﬁ", "日本", "école", "İ", "ς", "Σ", "\u0130a",
		"a--b", "ab--c", "-a", "a-", "a_b", "", "xn--", "xn--0", "a\u200db", "नी\u200d", "א", "א1", "1א", "\u00ad", "a b", "\x00", "\xff", "x\u0301", "K", "Å",
		strings.Repeat("a", 63), strings.Repeat("é", 60), "*", "ⅷ", "㎏", "。", "a．b",
	}
	parts := []string{}
	for range 1 + g.IntN(3) {
		label := labels[g.IntN(17)]
		if g.IntN(6) == 0 {
			label = pick(g, labels...)
		}
		parts = append(parts, label)
	}
	return strings.Join(append(parts, pick(g, "org", "example", "ORG.", "test", "org..", "1", "")), ".")
}

// What a name is normalized to, and why not, is what Boulder says; and what is a CA's name to us is one that Boulder
// runs under.
func TestIssuerNames(t *testing.T) {
	n, seed := numbers.FromEnv(t)
	taken := uint64(0)
	for i := range n {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, ^i))}
		name := g.name()
		if g.IntN(8) == 0 {
			name = g.garble(name)
		}
		theirs, theirErr := core.NormalizeIssuerDomainName(name)
		mine, myErr := dnsname.NormalizeIssuer(name)
		if theirs != mine || fmt.Sprint(theirErr) != fmt.Sprint(myErr) {
			t.Fatalf("question %d of BOULDER_SEED=%d: %q is to Boulder %q, %v, to us %q, %v", i, seed, name, theirs, theirErr, mine, myErr)
		}
		parsed, err := persist.ParseIssuer(name)
		if err != nil {
			continue
		}
		taken++
		if again, err := core.NormalizeIssuerDomainName(parsed); theirErr != nil || parsed != theirs || err != nil || again != parsed {
			t.Fatalf("question %d of BOULDER_SEED=%d: %q is %q to us, and %q, %v to Boulder, which makes %q, %v of ours", i, seed, name, parsed, theirs, theirErr, again, err)
		}
	}
	if n >= numbers.Enough && (taken*5 < n || taken*5 > n*4) {
		t.Errorf("%d of %d names are taken: not a fifth of each kind", taken, n)
	}
}
