package certbot

import (
	"slices"
	"strings"
	"testing"
)

// TestParseConf takes values as ConfigObj 5.0.8 writes and reads them.
func TestParseConf(t *testing.T) {
	for line, want := range map[string][]string{
		`key = plain`:                       {"plain"},
		`key=plain`:                         {"plain"},
		`  key   =   two words  `:           {"two words"},
		`"key" = x`:                         {"x"},
		`key =`:                             {""},
		`key = ""`:                          {""},
		`key = ,`:                           nil,
		`key = dns-01,`:                     {"dns-01"},
		`key = dns-01, http-01`:             {"dns-01", "http-01"},
		`key = dns-01 ,http-01 # first dns`: {"dns-01", "http-01"},
		`key = "a, b"`:                      {"a, b"},
		`key = "a,b", c"d`:                  {"a,b", `c"d`},
		`key = "x # y" # z`:                 {"x # y"},
		`key = x # y`:                       {"x"},
		`key = a=b`:                         {"a=b"},
		`key = it's`:                        {"it's"},
		`key = /x/auth "q" -v`:              {`/x/auth "q" -v`},
		`key = '"whole"'`:                   {`"whole"`},
		`key = "'whole' x"`:                 {"'whole' x"},
		`key = " lead"`:                     {" lead"},
		`key = '''both "and' quotes'''`:     {`both "and' quotes`},
		`key = '''"a" 'b''''`:               {`"a" 'b'`},
		"key = '''a \nb''' # c":             {"a \nb"},
		"key = \"\"\"a\r\n[other]\r\nkey = '''\"\"\"": {"a\n[other]\nkey = '''"},
		"key = x\r": {"x"},
		"[[sub]]\nkey = no\n[params] # again\nkey = yes": {"yes"},
		"key = one\nkey = two":                           {"two"},
		"key = yes\n[other]\nkey = no":                   {"yes"},
		"key = yes\n[[params]]\nkey = no":                {"yes"},
	} {
		conf, err := parseConf("key = outside\n# comment\n\n[params]\n" + line + "\nend = 1\n")
		if got := conf["params"]["key"]; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"nonsense", "[params", "[[params]", "[params] x", `key = "a`, `key = 'a' b`, "key = '''a\nb", "key = a,,b", "key = ,a"} {
		if conf, err := parseConf("a = b\n" + line + "\n"); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: got %q, %v", line, conf, err)
		}
	}
}

func FuzzParseConf(f *testing.F) {
	f.Add("[renewalparams]\naccount = a\nserver = 'https://b/'\n")
	f.Add("account = a\n[x]\n=\n[renewalparams]\n\x00=\xff")
	f.Add("[renewalparams]\npref_challs = dns-01, \"a, b\",\nmanual_auth_hook = '''a\nb'''\n")
	f.Fuzz(func(t *testing.T, text string) {
		conf, err := parseConf(text)
		if err != nil && conf != nil {
			t.Errorf("%q: %q beside %v", text, conf, err)
		}
		server := conf["renewalparams"].text("server")
		dir := accountsDir("/etc/letsencrypt", server)
		if dir != "/etc/letsencrypt/accounts" && !strings.HasPrefix(dir, "/etc/letsencrypt/accounts/") {
			t.Errorf("server %q: %s", server, dir)
		}
		_, _ = certificateNames([]byte(text))
	})
}
