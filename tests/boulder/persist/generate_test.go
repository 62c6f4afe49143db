package persist

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/certhook/certhook/tests/boulder/oracle"
)

// traits is all that has to occur in the questions. Each is a rule of Boulder's, or a way to get it wrong.
var traits = []string{
	"a wildcard", "no record", "several records", "through a CNAME", "in several strings",
	"another CA", "no CA", "white space around the CA", "the CA in capitals", "the CA in other letters", "almost the CA",
	"our account", "another account", "no accounturi", "accounturi twice", "empty accounturi", "almost our account", "tag in capitals",
	"policy=wildcard", "policy in capitals", "another policy", "policy twice",
	"an end in the future", "an end in the past", "this very second", "an end that is no number", "an end of many digits", "end twice",
	"unknown parameter", "unknown parameter twice", "malformed parameter", "semicolon at the end", "white space", "garbled",
}

// generator makes a question up.
type generator struct {
	*rand.Rand
	q question
}

// generate makes the question of that number; equal seeds make equal questions.
func generate(seed, number uint64) question {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, number))}
	g.q.Domain = pick(g, "example.com", "svc.example.com", "a.b.example.co.uk", "xn--bcher-kva.example")
	g.q.Account = pick(g, int64(1), 12, 2893451)
	g.q.Now = time.Unix(pick(g, int64(1790000000), 1790000001, 1000, 4102444800), 0)
	if g.IntN(3) == 0 {
		g.q.Domain = "*." + g.q.Domain
		g.mark("a wildcard")
	}
	if g.IntN(10) == 0 {
		g.q.target = pick(g, "t.other.example", "_validation-persist.example.net", "example.com")
		g.mark("through a CNAME")
	}
	n := pick(g, 0, 1, 1, 1, 1, 1, 2, 2, 3, 4)
	switch n {
	case 0:
		g.mark("no record")
	case 1:
	default:
		g.mark("several records")
	}
	for range n {
		g.q.values = append(g.q.values, g.strings(g.value()))
	}
	return g.q
}

func (g *generator) mark(trait string) { g.q.traits = append(g.q.traits, trait) }

// pick returns one of some values, each as likely as it is often among them.
func pick[T any](g *generator, values ...T) T { return values[g.IntN(len(values))] }

// one returns the choice and marks it.
func (g *generator) one(trait string, values ...string) string {
	g.mark(trait)
	return pick(g, values...)
}

// strings cuts a value, as somebody or a DNS provider may.
func (g *generator) strings(value string) []string {
	var list []string
	for len(value) > 255 || value != "" && g.IntN(8) == 0 {
		n := 1 + g.IntN(min(255, len(value)))
		list, value = append(list, value[:n]), value[n:]
	}
	if list = append(list, value); len(list) > 1 {
		g.mark("in several strings")
	}
	return list
}

// value makes a record: mostly one that somebody could mean, and all kinds of mistakes.
func (g *generator) value() string {
	parts := []string{g.issuer()}
	var params []string
	if g.IntN(12) > 0 {
		params = append(params, g.tag("accounturi")+g.equals()+g.account())
	} else {
		g.mark("no accounturi")
	}
	if g.IntN(2) == 0 {
		params = append(params, g.tag("policy")+g.equals()+g.policy())
	}
	if g.IntN(2) == 0 {
		params = append(params, g.tag("persistUntil")+g.equals()+g.until())
	}
	switch g.IntN(24) {
	case 0:
		params = append(params, g.tag("accounturi")+g.equals()+g.account())
		g.mark("accounturi twice")
	case 1:
		params = append(params, g.tag("policy")+"="+g.policy(), g.tag("policy")+"="+g.policy())
		g.mark("policy twice")
	case 2:
		params = append(params, g.tag("persistUntil")+"="+g.until(), g.tag("persistUntil")+"="+g.until())
		g.mark("end twice")
	case 3, 4:
		params = append(params, g.one("unknown parameter", "foo=bar", "foo=", "b@d tag=x", "foo=a=b", `foo="x"`, "é=x", "account-uri=x", `foo=\`, "foo==", "accounturi =x "))
	case 5:
		params = append(params, "foo=a", g.one("unknown parameter twice", "foo=a", "foo=b", "FOO=a"))
	case 6:
		params = append(params, g.one("malformed parameter", "flag", "=x", "", " ", "foo=a b", "foo=a\tb", "foo=é", "foo=\x00", "foo=\xff", "foo=\x7f", "\t=x", oracle.Issuer, "foo=a\u00a0"))
	}
	if g.IntN(4) == 0 {
		g.Shuffle(len(params), func(i, j int) { params[i], params[j] = params[j], params[i] })
	}
	for _, p := range params {
		parts = append(parts, g.blank()+p+g.blank())
	}
	value := strings.Join(parts, pick(g, ";", "; "))
	if g.IntN(16) == 0 {
		value += g.one("semicolon at the end", ";", "; ", ";;", ";\t")
	}
	if g.IntN(16) == 0 {
		value = g.garble(value)
	}
	return value
}

func (g *generator) issuer() string {
	const ca = oracle.Issuer
	switch p := g.IntN(40); {
	case p < 28:
		return ca
	case p < 30:
		return g.one("another CA", "ca.example", "pki.goog", "www."+ca)
	case p < 31:
		return g.one("no CA", "", " ", "\t", "v=spf1 -all", `"`+ca+`"`)
	case p < 34:
		return g.one("white space around the CA", " "+ca, ca+"  ", "\t"+ca, ca+"\t", " "+ca+" ")
	case p < 37:
		return g.one("the CA in capitals", "LetsEncrypt.org", "LETSENCRYPT.ORG", ca+".", "LETSENCRYPT.ORG.")
	case p < 38: // which an escape keeps from being read
		return g.one("the CA in other letters", "ｌetsencrypt.org", "letsencrypt。org", "letſencrypt.org", "LETSENCRYPT．ORG")
	}
	return g.one("almost the CA", ca+"..", "lets_encrypt.org", "lets\u00adencrypt.org", ca+"\x00", ca+"\xff", "letsencrypt .org", "letsencrypt..org",
		"-"+ca, "xn--"+ca, strings.Repeat("a.", 127)+ca, strings.Repeat("a", 64)+"."+ca, ".", "..", "*."+ca, ca+"\n", "xn--0")
}

func (g *generator) tag(tag string) string {
	if g.IntN(10) == 0 {
		return g.one("tag in capitals", strings.ToUpper(tag), strings.ToUpper(tag[:1])+tag[1:], strings.ToLower(tag))
	}
	return tag
}

func (g *generator) equals() string {
	return pick(g, "=", "=", "=", "=", "=", "=", "=", " = ", "=\t", " =")
}

func (g *generator) blank() string {
	if g.IntN(8) == 0 {
		return g.one("white space", " ", "  ", "\t", " \t ", "\u00a0", "\r", "\n")
	}
	return ""
}

func (g *generator) account() string {
	uri := oracle.Account(g.q.Account)
	switch p := g.IntN(20); {
	case p < 15:
		return g.one("our account", uri)
	case p < 17:
		return g.one("another account", oracle.Account(g.q.Account+1), fmt.Sprint("https://acme-v01.api.letsencrypt.org/acme/reg/", g.q.Account), uri+"0")
	case p < 18:
		return g.one("empty accounturi", "", " ")
	}
	return g.one("almost our account", uri+"/", strings.ToUpper(uri[:8])+uri[8:], strings.Replace(uri, "acct/", "acct/0", 1), `"`+uri+`"`, strings.Replace(uri, "acct/", "acct/%31", 1),
		uri+"?", uri+"\xff", uri+"\x00", uri[8:], `\`+uri, uri+" x")
}

func (g *generator) policy() string {
	switch g.IntN(8) {
	case 0:
		return g.one("policy in capitals", "WILDCARD", "Wildcard", "wildCARD")
	case 1, 2:
		return g.one("another policy", "foo", "", "wildcards", "wildcard,foo", "*", "wıldcard", "wildcard;")
	}
	return g.one("policy=wildcard", "wildcard")
}

func (g *generator) until() string {
	now := g.q.Now.Unix()
	switch g.IntN(8) {
	case 0, 1, 2:
		return g.one("an end in the future", fmt.Sprint(now+1), fmt.Sprint(now+86400), "4102444801", fmt.Sprintf("+%d", now+5), fmt.Sprintf("000%d", now+5))
	case 3:
		return g.one("this very second", fmt.Sprint(now))
	case 4:
		return g.one("an end in the past", fmt.Sprint(now-1), "0", "-1", "1", "-0", "+0")
	case 5, 6:
		return g.one("an end of many digits", "-62135596800", "-62135596801", "-62135596799", "9223371974719179007", "9223371974719179008", "9223372036854775807",
			"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "253402300800", "000000000000000000000000000004102444801", "99999999999999999999")
	}
	return g.one("an end that is no number", "2030-01-01T00:00:00Z", "1900000000.5", "1_900_000_000", "", "0x713fb300", "1e10", "١٩", "--1", "+", "1900000000s", "Infinity")
}

// garble changes a value in one or two places.
func (g *generator) garble(value string) string {
	odd := []string{"", " ", "\t", ";", "=", "-", `"`, `\`, "\x00", "\x7f", "\x80", "\xc3\xa9", "\r", "a", "A", "~", "%", ".", "_"}
	for range 1 + g.IntN(2) {
		at := g.IntN(len(value) + 1)
		end := min(len(value), at+g.IntN(2))
		value = value[:at] + pick(g, odd...) + value[end:]
	}
	g.mark("garbled")
	return value
}
