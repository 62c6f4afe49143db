package resolver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func fixture(t *testing.T, name string) *dns.Msg {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseJSON(body)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// What public resolvers really answer is read as what it means.
func TestFixtures(t *testing.T) {
	const (
		chain = "ef9fdab2479440b3.vercel-dns-017.com"
		soa   = "beau.ns.cloudflare.com."
	)
	yahoo := "k=rsa;  p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDrEee0Ri4Juz+QfiWYui/E9UGSXau/2P8LjnTD8V4Unn+2FAZVGE3kL23bzeoULYv4PeleB3gfm" +
		"JiDJOKU3Ns5L4KJAUUHjFwDebt0NP+sBK0VKeTATL2Yr/S3bT/xhy+1xtj4RkdV7fVxTn56Lb4udUnwuxK4V5b5PdOKj/+XcwIDAQAB; n=A 1024 bit key;"
	tests := []struct {
		file  string
		rcode int
		end   string   // of the CNAMEs that begin at the question
		data  []string // of the records there: a CAA's tag and value, a TXT's value, an address
		soa   string   // the server that the SOA names
		extra string   // part of the remark; "" for none
	}{
		{file: "cloudflare-caa-generic", end: "yahoo.com", data: []string{"issue globalsign.com"}},
		{file: "cloudflare-caa-generic-pair", end: "example.com", data: []string{"issue letsencrypt.org"}},
		{file: "cloudflare-caa-text-pair", end: "example.com", data: []string{"issue letsencrypt.org"}},
		{file: "google-caa-pair", end: "example.com", data: []string{"issue letsencrypt.org"}},
		{file: "cloudflare-txt-adjacent", end: "s1024._domainkey.yahoo.com", data: []string{yahoo}},
		{file: "google-txt-quoted", end: "s1024._domainkey.yahoo.com", data: []string{yahoo}},
		{file: "cloudflare-txt", end: "_atproto.dholms.at", data: []string{"did=did:plc:yk4dd2qkboz2yv6tpubpc6co"}, extra: "RRSIGs Missing: for DNSKEY at., id = 1253"},
		{file: "cloudflare-cname", end: chain, data: []string{"216.198.79.65", "64.29.17.65"}},
		{file: "google-cname", end: chain, data: []string{"216.198.79.65", "64.29.17.65"}},
		{file: "cloudflare-cname-nodata", end: chain, soa: "ns1.vercel-dns-017.com."},
		{file: "google-cname-nodata", end: chain, soa: "ns1.vercel-dns-017.com."},
		{file: "cloudflare-nodata", end: "unde-pescuim.ro", soa: soa},
		{file: "google-nodata", end: "unde-pescuim.ro", soa: soa},
		{file: "cloudflare-nxdomain", rcode: dns.RcodeNameError, end: "nonexistent.example", soa: "a.root-servers.net."},
		{file: "google-nxdomain", rcode: dns.RcodeNameError, end: "nonexistent.example", soa: "a.root-servers.net."},
		{file: "cloudflare-servfail", rcode: dns.RcodeServerFailure, end: "dnssec-failed.org", extra: "DNSKEY Missing: no SEP matching the DS found for dnssec-failed.org."},
		{file: "google-servfail", rcode: dns.RcodeServerFailure, end: "dnssec-failed.org", extra: "DNSKEY Missing: No DNSKEY matches DS RRs of dnssec-failed.org"},
		{file: "cloudflare-servfail-two", rcode: dns.RcodeServerFailure, end: "unde-pescuim.ro", extra: "; No Reachable Authority: at delegation unde-pescuim.ro."},
		{file: "google-servfail-many", rcode: dns.RcodeServerFailure, end: "unde-pescuim.ro", extra: "[108.162.193.73] rcode=REFUSED for unde-pescuim.ro/rrsig"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			m := fixture(t, tt.file)
			if m.Rcode != tt.rcode || len(m.Question) != 1 {
				t.Fatalf("%s with the question %v", RcodeName(m.Rcode), m.Question)
			}
			end, rrs := Follow(m, m.Question[0].Name, m.Question[0].Qtype)
			if end != tt.end {
				t.Errorf("the CNAMEs end at %q, want %q", end, tt.end)
			}
			var got []string
			for _, rr := range rrs {
				switch rr := rr.(type) {
				case *dns.CAA:
					got = append(got, rr.Tag+" "+rr.Value)
				case *dns.TXT:
					got = append(got, TXT(rr))
				case *dns.A:
					got = append(got, rr.A.String())
				}
			}
			if strings.Join(got, "\n") != strings.Join(tt.data, "\n") {
				t.Errorf("records %q, want %q", got, tt.data)
			}
			server := ""
			for _, rr := range m.Ns {
				if rr, ok := rr.(*dns.SOA); ok {
					server = rr.Ns
				}
			}
			if server != tt.soa {
				t.Errorf("SOA of %q, want %q", server, tt.soa)
			}
			if extra := remark(m); !strings.Contains(extra, tt.extra) || (extra == "") != (tt.extra == "") {
				t.Errorf("remark %q, want %q", extra, tt.extra)
			}
		})
	}
	if got := values(fixture(t, "google-txt-bare")); len(got) != 1 || len(got[0]) <= 255 || !strings.HasSuffix(got[0], "1niwXwIDAQAB") {
		t.Errorf("the bare TXT is %q", got)
	}
}

// One record is the same in both encodings and in the wire form, whatever octets it has.
func TestEncodingsAgree(t *testing.T) {
	tests := []struct {
		name    string
		qtype   uint16
		wire    string // the record's data in octets
		text    string // its presentation form
		generic string
	}{
		{
			"CAA", dns.TypeCAA, "\x00\x05issueletsencrypt.org", `0 issue "letsencrypt.org"`,
			`\# 22 00 05 69 73 73 75 65 6c 65 74 73 65 6e 63 72 79 70 74 2e 6f 72 67`,
		},
		{
			"CAA with parameters", dns.TypeCAA, "\x80\x05ISSUEca.example; accounturi=https://ca.example/1", `128 ISSUE "ca.example; accounturi=https://ca.example/1"`,
			`\# 50 80054953535545 63612E6578616D706C653B206163636F756E747572693D68747470733A2F2F63612E6578616D706C652F31`,
		},
		{"CAA without quotes", dns.TypeCAA, "\x00\x05issue;", `0 issue ;`, `\# 8 00056973737565 3b`},
		{"CAA without value", dns.TypeCAA, "\x00\x05issue", `0 issue ""`, `\# 7 00056973737565`},
		{
			"CAA with a quote, a backslash and other octets", dns.TypeCAA, "\x00\x05issuea\"b\\c d\n\xe9\\", `0 issue "a\"b\\c d\010\233\\"`,
			`\# 17 0005 6973737565 61 22 62 5c 63 20 64 0a e9 5c`,
		},
		{
			"TXT", dns.TypeTXT, "\x03o\"e\x00\x03t\\\xc3", `"o\"e" "" "t\\\195"`,
			`\# 9 03 6f 22 65 00 03 74 5c c3`,
		},
		{"TXT without a blank between", dns.TypeTXT, "\x01a\x01b", `"a""b"`, `\# 4 0161 0162`},
		{"CNAME", dns.TypeCNAME, "\x01b\x07example\x00", `b.example.`, `\# 11 0162076578616d706c6500`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := dns.RR_Header{Name: "a.example.", Rrtype: tt.qtype, Class: dns.ClassINET, Ttl: 60, Rdlength: uint16(len(tt.wire))}
			wire, _, err := dns.UnpackRRWithHeader(header, []byte(tt.wire), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{tt.text, tt.generic} {
				m, err := parseJSON(jsonAnswer(t, "a.example", tt.qtype, data))
				if err != nil {
					t.Errorf("%s: %v", data, err)
					continue
				}
				if rr := m.Answer[0]; !dns.IsDuplicate(rr, wire) || rr.String() != wire.String() || rr.Header().Rdlength != wire.Header().Rdlength {
					t.Errorf("%s is read as\n%v, want\n%v", data, rr, wire)
				}
			}
		})
	}
}
