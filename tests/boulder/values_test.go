package boulder

import (
	"fmt"
	"strings"

	"github.com/certhook/certhook/tests/boulder/oracle"
)

// text is something written, with what is special about it.
type text struct {
	text   string
	traits []string
}

func (t *text) write(s string, traits ...string) {
	t.text += s
	t.traits = append(t.traits, traits...)
}

// value makes the value of an issue or issuewild record: mostly one that somebody could mean, and all kinds
// of mistakes.
func (g *generator) value() text {
	var t text
	switch p := g.IntN(40); {
	case p < 25:
		t.write(oracle.Issuer)
	case p < 28:
		t.write("ca.example", "another CA")
	case p < 30:
		t.write("", "no CA")
	case p < 33:
		t.write(pick(g, " ", "\t", " \t ")+oracle.Issuer+pick(g, "", " ", "\t"), "white space around the CA")
	case p < 35:
		t.write(pick(g, "LetsEncrypt.org", "LETSENCRYPT.ORG"), "the CA in capitals")
	default:
		t.write(pick(g, oracle.Issuer+".", "www."+oracle.Issuer, oracle.Issuer+"\x00", "\xa0"+oracle.Issuer, oracle.Issuer+"\xff",
			`"`+oracle.Issuer+`"`, `letsencrypt\.org`, oracle.Issuer+" ca.example", oracle.Issuer+"\n", "letsencrypt .org"), "almost the CA")
	}
	for range pick(g, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4) {
		t.write(";")
		g.blank(&t)
		g.param(&t)
		g.blank(&t)
	}
	switch g.IntN(16) {
	case 0:
		t.write(pick(g, ";", "; ", ";\t"), "semicolon at the end")
	case 1:
		t.write(pick(g, ";;", "; ;", ";;;"), "semicolons at the end")
	}
	if g.IntN(16) == 0 {
		g.garble(&t)
	}
	return t
}

// blank writes white space now and then.
func (g *generator) blank(t *text) {
	if g.IntN(5) == 0 {
		t.write(pick(g, " ", "  ", "\t", " \t"), "white space around a parameter")
	}
}

// param writes one parameter.
func (g *generator) param(t *text) {
	switch p := g.IntN(20); {
	case p < 7:
		g.accountURI(t)
	case p < 14:
		g.methods(t)
	case p < 16:
		t.write(pick(g, "foo=bar", "foo=", "policy=ev", "a=b=c", "a==", "x=!\"#~", "0=1", "accounturis=1"), "unknown parameter")
	case p < 17:
		t.write("foo-bar=1", "tag with a hyphen")
	case p < 18:
		t.write(pick(g, "=1", " =1", "="), "empty tag")
	default:
		t.write(pick(g, "flag", "", " ", "foo=a b", "a b=c", "b@d=x", "-a=1", "a-=1", "-=1", "a_b=1", "f\xc3\xb6=1", "foo=\xe9", "foo=\x00", "foo=\x7f",
			"foo=a\tb", "\"a\"=b", oracle.Issuer), "malformed parameter")
	}
}

// equals writes what stands between tag and value.
func (g *generator) equals(t *text) {
	t.write(pick(g, "=", "=", "=", "=", "=", "=", "=", " = ", "=\t", " ="))
}

func (g *generator) accountURI(t *text) {
	tag := "accounturi"
	if g.IntN(10) == 0 {
		tag = pick(g, "AccountURI", "ACCOUNTURI", "accountUri")
		t.write("", "accounturi in capitals")
	}
	if strings.Contains(t.text, tag) {
		t.write("", "accounturi twice")
	}
	t.write(tag)
	g.equals(t)
	uri := oracle.Account(g.q.account)
	switch p := g.IntN(20); {
	case p < 12:
		t.write(uri, "our account")
	case p < 14:
		t.write(fmt.Sprint("https://acme-v01.api.letsencrypt.org/acme/reg/", g.q.account), "our account by its old URI")
	case p < 16:
		t.write(pick(g, oracle.Account(g.q.account+1), fmt.Sprint("https://acme-v01.api.letsencrypt.org/acme/reg/", g.q.account+1),
			fmt.Sprint("https://acme-staging-v02.api.letsencrypt.org/acme/acct/", g.q.account),
			fmt.Sprint("https://acme-staging.api.letsencrypt.org/acme/reg/", g.q.account)), "another account")
	case p < 17:
		t.write("", "empty accounturi")
	case p < 18:
		t.write(pick(g, "%zz", "https://[::1", ":", "https://a b/", "http://a:b/"), "accounturi that is no URI")
	default:
		t.write(pick(g, uri+"/", uri+"0", strings.ToUpper(uri[:8])+uri[8:], strings.Replace(uri, "acct/", "acct/0", 1), `"`+uri+`"`,
			strings.Replace(uri, "acct/", "acct/%31", 1), uri+"?", uri+"\xff", uri+"\x00", uri[8:]), "almost our account")
	}
}

func (g *generator) methods(t *text) {
	tag := "validationmethods"
	if g.IntN(10) == 0 {
		tag = pick(g, "ValidationMethods", "VALIDATIONMETHODS", "validationMethods")
		t.write("", "validationmethods in capitals")
	}
	if strings.Contains(t.text, tag) {
		t.write("", "validationmethods twice")
	}
	t.write(tag)
	g.equals(t)
	us := g.q.method
	switch p := g.IntN(20); {
	case p < 8:
		t.write(us, "our method")
	case p < 11:
		t.write(pick(g, "tls-alpn-01,", "foo-99,", "x,y,z,", "http-01,")+us, "our method among others")
	case p < 13:
		t.write(pick(g, "foo-99", "x", "dns-02", "http-01", "dns-01", "dns-01,http-01", "tls-alpn-01"), "perhaps other methods")
	case p < 14:
		t.write(pick(g, us+",", us+",b@d", us+",,"), "our method before a malformed one")
	case p < 15:
		t.write(pick(g, "b_d,", ",", "x,,", "\xe9,", "a.b,")+us, "our method after a malformed one")
	case p < 16:
		t.write(pick(g, "", ",", ",,"), "no method")
	case p < 17:
		t.write(strings.ToUpper(us), "our method in capitals")
	case p < 18:
		t.write(pick(g, "x, ", "x ,", "x\t,")+us, "methods with white space")
	default:
		t.write(pick(g, us+"-", "-"+us, us+"\x00", `"`+us+`"`, us[:len(us)-1], us+"1", us+"\xff", "--,"+us), "almost our method")
	}
}

// garble changes a value in one or two places.
func (g *generator) garble(t *text) {
	odd := []string{"", " ", "\t", ";", "=", ",", "-", "\"", "\\", "\x00", "\x7f", "\x80", "\xc3\xa9", "\r", "a", "A", "~", "%"}
	for range 1 + g.IntN(2) {
		at := g.IntN(len(t.text) + 1)
		end := min(len(t.text), at+g.IntN(2))
		t.text = t.text[:at] + pick(g, odd...) + t.text[end:]
	}
	t.write("", "garbled")
}
