package resolver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// jsonAnswer is an answer of one record.
func jsonAnswer(t *testing.T, name string, qtype uint16, data string) []byte {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"Status":   0,
		"Question": []any{map[string]any{"name": name, "type": qtype}},
		"Answer":   []any{map[string]any{"name": name, "type": qtype, "TTL": 60, "data": data}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestParseJSONRecords(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct{ name, qtype, data, want string }{
		{"quoted", "16", `"\"v=1 a\""`, `v=1 a`},
		{"bare", "16", `"v=1; a"`, `v=1; a`},
		{"bare with escapes", "16", `"a\\\"b"`, `a\"b`},
		{"bare and long", "16", `"` + long + `"`, long},
		{"split", "16", `"\"one\" \"two\""`, `onetwo`},
		{"escaped quote", "16", `"\"a\\\"b\\\\c\""`, `a"b\c`},
		{"escaped octet", "16", `"\"a\\195\\164\""`, "a\xc3\xa4"},
		{"quoted and long", "16", `"\"` + long + `\""`, long},
		{"empty", "16", `"\"\""`, ``},
		{"bare and empty", "16", `""`, ``},
		{"RFC 3597", "16", `"\\# 4 03666f6f"`, `foo`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := parseJSON([]byte(fmt.Sprintf(`{"Status":0,"Answer":[{"name":"a.example.","type":%s,"TTL":60,"data":%s}]}`, tt.qtype, tt.data)))
			if err != nil {
				t.Fatal(err)
			}
			if got := values(m); len(got) != 1 || got[0] != tt.want {
				t.Errorf("value %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParseJSONOtherTypes(t *testing.T) {
	m, err := parseJSON([]byte(`{"Status":3,"TC":true,"Question":[{"name":"a.example","type":257}],
		"Answer":[{"name":"a.example","type":5,"TTL":1,"data":"b.example."},
			{"name":"b.example.","type":257,"TTL":1,"data":"0 issue \"ca.example; accounturi=x\""},
			{"name":"b.example.","type":257,"TTL":1,"data":"\\# 15 000569737375653b63612e6578616d"},
			{"name":"b.example.","type":65280,"TTL":1,"data":"\\# 1 00"}],
		"Authority":[{"name":"example.","type":6,"TTL":1,"data":"ns.example. host.example. 1 2 3 4 5"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if m.Rcode != dns.RcodeNameError || !m.Truncated || len(m.Answer) != 4 || len(m.Ns) != 1 {
		t.Fatalf("message %v", m)
	}
	if c, ok := m.Answer[0].(*dns.CNAME); !ok || c.Target != "b.example." {
		t.Errorf("record %v", m.Answer[0])
	}
	if c, ok := m.Answer[1].(*dns.CAA); !ok || c.Value != "ca.example; accounturi=x" {
		t.Errorf("record %v", m.Answer[1])
	}
	if c, ok := m.Answer[2].(*dns.CAA); !ok || c.Tag != "issue" {
		t.Errorf("record %v", m.Answer[2])
	}
	if s, ok := m.Ns[0].(*dns.SOA); !ok || s.Minttl != 5 {
		t.Errorf("record %v", m.Ns[0])
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for _, body := range []string{
		``, `null`, `{}`, `[]`, `{"Status":-1}`, `{"Status":4096}`, `{"Status":"0"}`, `{"Status":0} {}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":1,"TTL":60,"data":"not an address"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":1,"TTL":60,"data":""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":1,"TTL":-1,"data":"192.0.2.1"}]}`,
		`{"Status":0,"Answer":[{"name":"a..example","type":1,"TTL":60,"data":"192.0.2.1"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":5,"TTL":60,"data":"b.\nc. 60 IN A 192.0.2.1"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":41,"TTL":60,"data":""}]}`,
		`{"Status":0,"Answer":[{"type":1,"TTL":60,"data":"192.0.2.1"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","TTL":60,"data":"192.0.2.1"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"\\#"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"\\# x 00"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"256 issue \"a\""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 \"issue\" \"a\""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue \"a"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue \"a\" \"b\""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue a b"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue a\\99"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"0 issue \"a\\\""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"\\# 8 00056973737565"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"\\# 7 0005697373756"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":257,"TTL":60,"data":"\\# 3 00ff69"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":1,"TTL":60,"data":"\\# 3 c00002"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":16,"TTL":60,"data":"\"open"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":16,"TTL":60,"data":"\"one\"; \"two\""}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":16,"TTL":60,"data":"\"one\" (\"two\")"}]}`,
		`{"Status":0,"Answer":[{"name":"a.example","type":5,"TTL":60,"data":"b.example.;c"}]}`,
	} {
		if m, err := parseJSON([]byte(body)); err == nil {
			t.Errorf("parseJSON(%s) = %v, want an error", body, m)
		}
	}
}
