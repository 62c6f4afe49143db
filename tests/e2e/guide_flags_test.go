package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

// The flags that an existing entrypoint passes to verify, the meaning of each and of the settings beside them.
func TestGuideFlags(t *testing.T) {
	const domain, gateway, app = "svc.example.com", "gw.example.net", "_app.svc.example.com"
	var (
		cname   = "_acme-challenge.svc.example.com CNAME " + lab.Target(domain, lab.AliasZone)
		address = "svc.example.com A 192.0.2.2" // the lab has it
		txt     = app + ` TXT "id:443"`
		foreign = domain + ` CAA 0 issue "ca.example"`
	)
	l := lab.New(t, lab.Options{Settings: map[string]string{"ACME_CHALLENGE_ALIAS": "deleg2.example.org"}})
	account := l.PutAccount("1")
	value := "letsencrypt.org;validationmethods=dns-01;accounturi=" + account
	lock := domain + ` CAA 0 issue "` + value + `"`
	l.World.Add(lab.ParentZone, gateway+" A 192.0.2.2")
	for _, rr := range []string{cname, txt, lock} {
		l.World.Add(lab.ProductionZone, rr)
	}
	flags := []string{
		"verify", "--domain", domain, "--alias-target", gateway, "--txt-name", app, "--txt-value", "id:443",
		"--caa-name", domain, "--caa-tag", "issue", "--caa-value", value, "--account-uri", account,
		"--challenge", "dns-01", "--delegation-zone", lab.AliasZone, "--mode", "once", "--timeout", "5", "--interval", "1",
		"--resolver", "udp://" + lab.Resolver, "--json", "--include", "cname,txt,caa,challenge-cname",
	}
	tests := []struct {
		name     string
		without  []string
		with     []string
		flags    []string // appended, the last of a kind counts
		settings map[string]string
		code     int
		not      []string // kinds that are not fine
		says     string   // on stderr
	}{
		{name: "all is there"},
		{name: "no CNAME", without: []string{cname}, code: 3, not: []string{"challenge-cname"}},
		{name: "no CAA", without: []string{lock}, code: 3, not: []string{"caa"}, says: "add " + domain + `. CAA 0 issue "` + value},
		{name: "no CAA, and that is accepted", without: []string{lock}, settings: map[string]string{"ALLOW_MISSING_CAA": "true"}, says: "ACCEPTED WITHOUT A LOCK"},
		{
			name: "a CAA that forbids it is never accepted", without: []string{lock}, with: []string{foreign},
			settings: map[string]string{"ALLOW_MISSING_CAA": "true"}, code: 3, not: []string{"caa"},
		},
		{name: "a second CA opens the lock", with: []string{foreign}, code: 3, not: []string{"caa"}, says: "ca.example"},
		{name: "no CAA, and none is asked for", without: []string{lock}, flags: []string{"--include", "cname,txt,challenge-cname"}},
		{
			name: "a CAA that forbids it is found unasked", without: []string{lock}, with: []string{foreign},
			flags: []string{"--include", "challenge-cname"}, code: 3, not: []string{"caa"},
		},
		{name: "no TXT", without: []string{txt}, code: 3, not: []string{"txt"}},
		{name: "another address", without: []string{address}, with: []string{domain + " A 192.0.2.66"}, code: 3, not: []string{"cname"}},
		{name: "only the challenge is asked for", without: []string{txt}, flags: []string{"--include", "challenge-cname"}},
		{name: "print always ends well", without: []string{cname, lock}, flags: []string{"--mode", "print"}, not: []string{"caa", "challenge-cname"}, says: "2 records are missing or wrong"},
		{name: "the time is up", without: []string{cname}, flags: []string{"--mode", "wait", "--timeout", "1s"}, code: 3, not: []string{"challenge-cname"}},
		{name: "tls-alpn-01 needs no challenge record", without: []string{cname, lock}, flags: []string{
			"--challenge", "tls-alpn-01", "--caa-value", strings.Replace(value, "dns-01", "tls-alpn-01", 1),
		}, with: []string{strings.Replace(lock, "dns-01", "tls-alpn-01", 1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			settings := map[string]string{"ACME_CHALLENGE_ALIAS": "deleg2.example.org"} // the flag beats it
			for k, v := range tt.settings {
				settings[k] = v
			}
			l.Configure(settings)
			args := slices.Clone(flags)
			for i := 0; i+1 < len(tt.flags); i += 2 { // a flag that takes a list would add to it
				args[slices.Index(args, tt.flags[i])+1] = tt.flags[i+1]
			}
			for _, rr := range tt.without {
				l.World.Remove(lab.ProductionZone, rr)
				defer l.World.Add(lab.ProductionZone, rr)
			}
			for _, rr := range tt.with {
				l.World.Add(lab.ProductionZone, rr)
				defer l.World.Remove(lab.ProductionZone, rr)
			}
			r := l.Run(lab.Hook("dnsguide"), args...)
			if r.Code != tt.code || !strings.Contains(r.Stderr, tt.says) {
				t.Errorf("want code %d and %q: %v", tt.code, tt.says, r)
			}
			var report struct {
				OK      bool
				Results []struct {
					Findings []struct {
						Kind, Status string
						Accepted     bool
					}
				}
			}
			if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil {
				t.Fatalf("%v: %v", err, r)
			}
			var not []string
			for _, f := range report.Results[0].Findings {
				if f.Status != "ok" && !f.Accepted {
					not = append(not, f.Kind)
				}
			}
			slices.Sort(not)
			if !slices.Equal(not, tt.not) || report.OK != (len(tt.not) == 0) {
				t.Errorf("not fine are %q, want %q; ok is %v", not, tt.not, report.OK)
			}
		})
	}
}

// The webhook is told once what is to be created, signed so that a receiver in another language can tell, and
// the wait goes on until it is there. Without a receiver it does, too.
func TestGuideWebhook(t *testing.T) {
	const domain, token = "svc.example.com", "the-key-of-the-webhook"
	l := lab.New(t, lab.Options{})
	l.PutAccount("1")
	receiver := exec.Command("python3", "../../pkg/notify/testdata/receiver.py")
	receiver.Env = append(os.Environ(), "RECEIVER_TOKEN="+token)
	stdin, err := receiver.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := receiver.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	port := lines.Text()

	configure := func(url string) {
		l.Configure(map[string]string{
			"DNS_SETUP_MODE": "webhook", "DNS_SETUP_INTERVAL": "1", "DNS_SETUP_TIMEOUT": "60",
			"DNS_WEBHOOK_URL": url, "DNS_WEBHOOK_TOKEN": token, "DSTACK_APP_ID": "app", "DSTACK_INSTANCE_ID": "instance",
		})
	}
	configure("http://127.0.0.1:" + port + "/hook/secret-path")
	run := startGuide(t, "verify", "-d", domain, "--resolver", "udp://"+lab.Resolver)
	lines.Scan()
	var verdict struct {
		OK      bool
		Error   string
		Payload struct {
			Domain, Challenge, AppID string
			Records                  []struct {
				Name, Type, Value string
				Exact             bool
			}
		}
	}
	if err := json.Unmarshal(lines.Bytes(), &verdict); err != nil || !verdict.OK {
		t.Fatalf("the receiver says %s (%v)", lines.Text(), err)
	}
	// What the webhook was told is created, and nothing else.
	for _, record := range verdict.Payload.Records {
		l.World.Add(lab.ProductionZone, strings.Join([]string{record.Name, record.Type, record.Value}, " "))
	}
	<-run.ended
	if code := run.cmd.ProcessState.ExitCode(); code != 0 || len(verdict.Payload.Records) != 2 {
		t.Errorf("exit code %d: %s\n%s", code, &run.output, lines.Text())
	}
	if out := run.output.String(); strings.Contains(out, token) || strings.Contains(out, "secret-path") {
		t.Errorf("a secret is shown: %s", out)
	}
	stdin.Close()
	rest, _ := io.ReadAll(stdout)
	if err := receiver.Wait(); err != nil || len(rest) > 0 {
		t.Errorf("the receiver was told more than once: %s (%v)", rest, err)
	}

	// Nobody listens any more.
	l.Undelegate(domain)
	run = startGuide(t, "verify", "-d", domain, "--resolver", "udp://"+lab.Resolver, "--interval", "1")
	eventually(t, "a look at the name", func() bool { return len(l.World.Matching(domain, 257)) > 0 })
	l.Delegate(domain)
	<-run.ended
	if code := run.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("without a receiver, exit code %d: %s", code, &run.output)
	}
}
