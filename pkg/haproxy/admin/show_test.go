package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDescription(t *testing.T) {
	whole := "Filename: /a.pem\nStatus: Used\nSerial: 39B8\nnotBefore: Nov 29 20:19:58 2026 GMT\nnotAfter: Feb  7 20:19:58 2027 GMT\n" +
		"Subject Alternative Name: DNS:a.test, DNS:*.a.test, \nAlgorithm: EC256\nSHA1 FingerPrint: 6B59\nSubject: /CN=Serial: 1\nIssuer: /CN=Status: 2\n" +
		"Chain Subject: /CN=Int\nChain Issuer: /CN=Root\nOCSP Response Key: \n\n"
	want := Certificate{
		Name: "/a.pem", Status: "Used", Serial: "39B8", SHA1: "6B59", SANs: []string{"a.test", "*.a.test"},
		NotBefore: time.Date(2026, 11, 29, 20, 19, 58, 0, time.UTC), NotAfter: time.Date(2027, 2, 7, 20, 19, 58, 0, time.UTC),
	}
	check := func(reply string, want Certificate) {
		t.Helper()
		found := map[string]Certificate{}
		err := parseCertificates(found, []string{"/a.pem"}, reply)
		got := found["/a.pem"]
		if err != nil || got.Name != want.Name || got.Status != want.Status || got.Serial != want.Serial || got.SHA1 != want.SHA1 ||
			!got.NotBefore.Equal(want.NotBefore) || !got.NotAfter.Equal(want.NotAfter) || !slices.Equal(got.SANs, want.SANs) {
			t.Errorf("%q is read as %+v, %v", reply, got, err)
		}
	}
	check(whole, want)

	// Beyond HAProxy's buffer a field is left out, with or without the word before it.
	large := want
	large.SANs, large.SHA1 = nil, ""
	check(strings.Replace(strings.Replace(whole, "DNS:a.test, DNS:*.a.test, \n", "", 1), "SHA1 FingerPrint: 6B59\n", "", 1), large)
	large.SHA1 = "6B59"
	check(whole[:strings.Index(whole, "Subject Alt")]+"SHA1 FingerPrint: 6B59\nSubject: /CN=a.test\n\n\n", large)
	check("Filename: /a.pem\nStatus: Empty\nOCSP Response Key: \n\n", Certificate{Name: "/a.pem", Status: "Empty"})
	check("Filename: /a.pem\nnotAfter: one day\n\n", Certificate{Name: "/a.pem"})
}

func TestList(t *testing.T) {
	for _, tt := range []struct {
		reply string
		want  List
	}{
		{"\n", List{}},
		{"# filename\n/a.pem\ncerts//b.pem.rsa\n\n", List{Names: []string{"/a.pem", "certs//b.pem.rsa"}}},
		{"# transaction\n*/a.pem\n# filename\n/a.pem\n\n", List{Names: []string{"/a.pem"}, Transaction: "/a.pem"}},
		{"# filename\n/with space.pem\n*star.pem\n\n", List{Names: []string{"/with space.pem", "*star.pem"}}},
	} {
		if got, err := parseList(tt.reply); err != nil || got.Transaction != tt.want.Transaction || !slices.Equal(got.Names, tt.want.Names) {
			t.Errorf("%q is read as %+v, %v", tt.reply, got, err)
		}
	}
	for _, reply := range []string{
		"/a.pem\n\n", "Unknown command\n\n", "# something new\n/a.pem\n\n", "# filename\n/a.pem\n# something new\n/b.pem\n\n",
		"# transaction\n/a.pem\n\n", "# transaction\n*/a.pem\n*/b.pem\n\n",
	} {
		if got, err := parseList(reply); err == nil {
			t.Errorf("%q is read as %+v", reply, got)
		} else if _, ok := errors.AsType[*Refused](err); !ok {
			t.Errorf("%q: %v", reply, err)
		}
	}
}
