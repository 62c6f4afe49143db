package admin

import (
	"slices"
	"strings"
	"testing"
)

// seeds are replies of HAProxy 2.6, whole and in part.
var seeds = []string{
	"", "\n", "\n\n", listText, describedText, processText, createdText, committedText, abortedText,
	"# transaction\n*/certs/a.pem\n# filename\n", "# filename\n*/certs/a.pem\n", "/certs/a.pem\n", "# transaction\n/certs/a.pem\n",
	"# transaction\n*/certs/a.pem\n*/certs/b.pem\n", "# else\n/certs/a.pem\n\n",
	"Filename: */certs/a.pem\nStatus: Unused\nSerial: 39B81226C97650D7\nnotBefore: Nov 29 20:19:58 2026 GMT\nnotAfter: Feb  7 20:19:58 2027 GMT\n" +
		"Subject Alternative Name: DNS:a.test, DNS:*.a.test, \nAlgorithm: EC256\nSHA1 FingerPrint: 6B59AFCA\nSubject: /CN=a.test\nOCSP Response Key: \n\n",
	"Filename: /certs/a.pem\nStatus: Empty\nOCSP Response Key: \n\n", "Filename: /certs/a.pem\nStatus: Used\nSubject Alternative Name: Algorithm: EC256\n\n\n",
	describedText + "Can't display the certificate: Not found or the certificate is a bundle!\n\n",
	"Permission denied\n\n", "Can't allocate memory!\n\n", "No ongoing transaction!\n\n", "No ongoing transaction! !\nCan't commit /certs/a.pem!\n\n",
	"Can't show!\nOperations on certificates are currently locked!\n\n", "Transaction updated for certificate /certs/b.pem!\n\n",
	"Committing /certs/a.pem....\n", "Committing /certs/a.pem.\nwarning\nSuccess!\n\n", "Success!\n\n",
	"Name: HAProxy\nVersion: 2.6.12\nPid: -1\nUptime_sec: 2\n\n", "Name: HAProxy\nVersion: 2.6.12\nPid: 7\nUptime_sec: 99999999999999999999\n\n",
	"Version: 2.6.12\nPid: 7\nUptime_sec: 2\n\n", "Name: HAProxy\nPid: 7\nUptime_sec: 2\n\n", "Name: HAProxy\nVersion: 2.6.12\nPid: 7\n\n",
}

func add(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
}

// FuzzList holds a list to its lines: each is told once, nothing is made up.
func FuzzList(f *testing.F) {
	add(f)
	f.Fuzz(func(t *testing.T, reply string) {
		l, err := parseList(reply)
		if err != nil {
			if len(l.Names) > 0 || l.Transaction != "" {
				t.Errorf("%+v beside %v", l, err)
			}
			return
		}
		var b strings.Builder
		if strings.Contains(reply, "# transaction\n") && l.Transaction != "" {
			b.WriteString("# transaction\n*" + l.Transaction + "\n")
		}
		b.WriteString("# filename\n")
		for _, name := range l.Names {
			if name == "" || !strings.Contains("\n"+reply+"\n", "\n"+name+"\n") {
				t.Errorf("%q has no line %q", reply, name)
			}
			b.WriteString(name + "\n")
		}
		again, err := parseList(b.String() + "\n")
		if err != nil || again.Transaction != l.Transaction || !slices.Equal(again.Names, l.Names) {
			t.Errorf("%q is read as %+v and written %q, which is read as %+v, %v", reply, l, b.String(), again, err)
		}
	})
}

// FuzzCertificates holds descriptions to what was asked for.
func FuzzCertificates(f *testing.F) {
	add(f)
	f.Fuzz(func(t *testing.T, reply string) {
		names := []string{testName, "*" + testName}
		for _, asked := range [][]string{names[:1], names[1:], names} {
			found := map[string]Certificate{}
			err := parseCertificates(found, asked, reply)
			if err != nil {
				continue
			}
			for _, name := range asked {
				c := found[name]
				if c.Name != name || !strings.Contains(reply, "Filename: "+name) || !strings.Contains(reply, c.SHA1) || !strings.Contains(reply, c.Serial) {
					t.Errorf("%q is read as %+v", reply, c)
				}
				for _, san := range c.SANs {
					if strings.Contains(san, ", ") || !strings.Contains(reply, "DNS:"+san) {
						t.Errorf("%q has the name %q", reply, san)
					}
				}
			}
			if len(found) != len(asked) {
				t.Errorf("%q: %d of %d", reply, len(found), len(asked))
			}
		}
	})
}

// FuzzProcess holds what says who it is to whole answers.
func FuzzProcess(f *testing.F) {
	add(f)
	f.Fuzz(func(t *testing.T, reply string) {
		p, err := parseProcess(reply)
		if err == nil && (p.PID <= 0 || p.Uptime < 0 || p.Name == "" || p.Version == "") || err != nil && p != (Process{}) {
			t.Errorf("%q is read as %+v, %v", reply, p, err)
		}
	})
}

// FuzzChange has no reply pass for a success that is not word for word one.
func FuzzChange(f *testing.F) {
	add(f)
	f.Fuzz(func(t *testing.T, reply string) {
		line := strings.TrimRight(reply, "\n")
		if (created(testName, reply) == nil) != (line == strings.TrimRight(createdText, "\n")) {
			t.Errorf("set: %q, %v", reply, created(testName, reply))
		}
		if err := aborted(testName, reply); (err == nil) != (line == strings.TrimRight(abortedText, "\n") || line == "No ongoing transaction!") {
			t.Errorf("abort: %q, %v", reply, err)
		}
		begun := strings.HasPrefix(line, "Committing "+testName+".") || strings.HasPrefix(line, "Committing "+testName+"\n")
		if committed(testName, reply) == nil && (!begun || !strings.HasSuffix(line, "\nSuccess!")) {
			t.Errorf("commit: %q", reply)
		}
	})
}
