package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/dnstest"
	"github.com/certhook/certhook/tests/lab"
)

// fault is something that goes wrong on request, and what certhook promises to do about it.
type fault struct {
	name     string
	broken   string            // what is broken
	does     string            // what the hooks then do
	settings map[string]string // besides the usual ones
	inject   func(*demo) (mend func())

	exit   int    // of auth-hook; killed where it does not come to that
	says   string // in what the hooks log, for whoever reads it
	issued bool   // whether certbot gets the certificate all the same
	left   int    // values of ours that are still there when certbot has ended, for the next run
}

// killed is the exit code of a hook that has none.
const killed = -1

// faults is what make demo FAULT=… can break.
var faults = []fault{
	{
		name: "no-cname", broken: "The CNAME was never added to " + lab.ProductionZone + ".",
		does:   "auth-hook finds that out from production's own servers, writes nothing, and prints the line to add.",
		inject: noCNAME,
		exit:   cli.ExitVerdict, says: "_acme-challenge.svc.example.com. CNAME ",
	},
	{
		name: "api-403", broken: "The API refuses every write with 403, as it does when a token lost a permission.",
		does:   "auth-hook says which permission is missing. Nothing was written.",
		inject: api(cloudflaretest.Forbidden.On(http.MethodPost, cloudflaretest.RecordSet)),
		exit:   cli.ExitProvider, says: "DNS:Edit",
	},
	{
		name: "api-429", broken: "The API answers every write with 429 and wants five minutes of silence.",
		does:   "auth-hook has 60 s (PROVIDER_TIMEOUT), so it gives up at once instead of sleeping through them.",
		inject: api(limited().On(http.MethodPost, cloudflaretest.RecordSet)),
		exit:   cli.ExitProvider, says: "later than the time left",
	},
	{
		name: "api-502", broken: "Once the value is written the API is down: it answers 502, with an HTML page.",
		does: "cleanup-hook says \"not removed\" and keeps the value in the journal. The next run removes it.",
		inject: api(cloudflaretest.HTML502.On(http.MethodGet, cloudflaretest.RecordSet),
			cloudflaretest.HTML502.On(http.MethodDelete, cloudflaretest.OneRecord)),
		says: "not removed", issued: true, left: 1,
	},
	{
		name: "api-lost-reply", broken: "The API carries the write out and closes the connection without an answer.",
		does:   "auth-hook looks whether the value is there, and finds it: it is neither lost nor written twice.",
		inject: api(cloudflaretest.LostReply.On(http.MethodPost, cloudflaretest.RecordSet)),
		says:   "TXT added", issued: true,
	},
	{
		name: "api-slow", broken: "The API takes writes and never answers. PROVIDER_TIMEOUT is 4 s.",
		does:     "auth-hook gives up in time. The value may be there or still come, so cleanup-hook looks for it, and a later run once more.",
		settings: map[string]string{"PROVIDER_TIMEOUT": "4s"},
		inject:   api(cloudflaretest.Fault{Delay: time.Hour}.On(http.MethodPost, cloudflaretest.RecordSet)),
		exit:     cli.ExitProvider, says: "looked for again later",
	},
	{
		name: "dns-lag", broken: "The name servers show a change after ten minutes. PROPAGATION_TIMEOUT is 5 s.",
		does:     "auth-hook says what every server answered last, and leaves the value: certbot goes on, and might succeed.",
		settings: map[string]string{"PROPAGATION_TIMEOUT": "5s"},
		inject:   servers(0, 3, func(s *dnstest.Server, on bool) { s.SetLag(lag(on, 10*time.Minute)) }),
		exit:     cli.ExitPropagation, says: "not visible on all servers",
	},
	{
		name: "dns-dead", broken: "One of the three name servers does not answer.",
		does:   "auth-hook names it and goes on with the two that do.",
		inject: servers(0, 1, (*dnstest.Server).SetDead),
		says:   "no answer in time", issued: true,
	},
	{
		name: "dns-lame", broken: "One of the three name servers knows nothing of the zone and answers REFUSED.",
		does:   "auth-hook names it and goes on with the two that do.",
		inject: servers(1, 1, (*dnstest.Server).SetLame),
		says:   "REFUSED", issued: true,
	},
	{
		name: "disk-full", broken: "The disk that holds the journal, " + lab.StateDir + ", is full.",
		does:   "auth-hook sends nothing to the API: what is not on record nobody would clean up.",
		inject: func(d *demo) func() { return d.lab.FillDisk(lab.StateDir) },
		exit:   cli.ExitUsage, says: "no space left on device",
	},
	{
		name: "kill-hook", broken: "auth-hook is killed (SIGKILL) when the API has stored the value, and not answered.",
		does:   "Certbot goes on. cleanup-hook finds the value in the journal, where it stood before it was sent.",
		inject: killAtWrite(lab.Hook, "auth-hook"),
		exit:   killed, says: "TXT removed", issued: true,
	},
	{
		name: "kill-certbot", broken: "certbot is killed (SIGKILL) while auth-hook writes. Nobody will call cleanup-hook.",
		does:   "auth-hook notices that nobody waits for it, and removes what it wrote.",
		inject: killAtWrite(func(string) string { return certbot }, "certbot"),
		exit:   cli.ExitFailure, says: "certbot, which started this hook, is gone",
	},
}

// choose returns the performance that the command line asks for; without one, the exit code.
func choose(args []string, stdout, stderr io.Writer) (perform func(lab.TB), exit int) {
	if len(args) == 1 {
		for _, f := range faults {
			if f.name == args[0] {
				return f.play, 0
			}
		}
		if args[0] == "help" {
			listFaults(stdout)
			return nil, 0
		}
	}
	fmt.Fprintf(stderr, "demo: there is no fault %q\n", strings.Join(args, " "))
	listFaults(stderr)
	return nil, cli.ExitUsage
}

func listFaults(w io.Writer) {
	fmt.Fprintln(w, "make demo FAULT=… shows what the hooks do when")
	for _, f := range faults {
		fmt.Fprintf(w, "  %-14s  %s\n", f.name, f.broken)
	}
}

func noCNAME(d *demo) (mend func()) {
	d.lab.Undelegate(single[0])
	return func() { d.lab.Delegate(single[0]) }
}

// api breaks the provider's API.
func api(faults ...cloudflaretest.Fault) func(*demo) func() {
	return func(d *demo) func() {
		var lifts []func()
		for _, f := range faults {
			lifts = append(lifts, d.lab.API.Break(f))
		}
		return func() {
			for _, lift := range lifts {
				lift()
			}
		}
	}
}

func limited() cloudflaretest.Fault {
	f := cloudflaretest.RateLimited
	f.RetryAfter = 300
	return f
}

// servers breaks so many name servers of the alias zone.
func servers(first, n int, set func(s *dnstest.Server, on bool)) func(*demo) func() {
	return func(d *demo) func() {
		for _, s := range d.lab.Alias[first : first+n] {
			set(s, true)
		}
		return func() {
			for _, s := range d.lab.Alias[first : first+n] {
				set(s, false)
			}
		}
	}
}

func lag(on bool, d time.Duration) time.Duration {
	if on {
		return d
	}
	return 0
}

// killAtWrite kills a program when the first value is stored. The name servers show it at once, so that it is
// there for whoever goes on.
func killAtWrite(path func(string) string, name string) func(*demo) func() {
	return func(d *demo) func() {
		for _, s := range d.lab.Alias {
			s.SetLag(0)
		}
		return d.lab.API.Break(cloudflaretest.Fault{
			Method: http.MethodPost, Path: cloudflaretest.RecordSet, Count: 1,
			Then: func() {
				if lab.Kill(path(name)) != 1 {
					d.tb.Errorf("demo: there was no %s to kill", name)
				}
				d.watch.say("kernel", name+" killed")
			},
		})
	}
}
