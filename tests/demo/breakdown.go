package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/certhook/certhook/tests/lab"
)

// play shows what happens when something goes wrong: to the run of certbot that meets with it, and to the next,
// for which it is mended.
func (f fault) play(tb lab.TB) {
	d := newDemo(tb, f.settings)
	d.story.say(fmt.Sprintf("%s needs a certificate; its challenges go to %s, for which the token is.", single[0], lab.AliasZone))
	d.tell("Broken    ", f.broken)
	d.tell("Documented", f.does)

	d.story.act(certonly(single))
	mend := f.inject(d)
	d.watch.begin(full)
	told, err := d.tryCertbot(lab.IssueArgs(single...)...)
	d.hooksEnd()
	_, certErr := d.certificate(single)
	if certErr != nil {
		d.watch.say("certbot", fmt.Sprintf("ends without a certificate: %v", err))
	}
	d.watch.end()
	log, _ := os.ReadFile(lab.HookLog) // without one nothing is proved below
	left, _ := d.txt()

	d.story.act("$ cleanup-hook --list")
	mend()
	listed := d.run(func(line string) { d.story.say("  " + line) }, lab.Hook("cleanup-hook"), "--list")
	d.next(certErr == nil)

	d.story.act("Afterwards")
	p := &proofs{story: d.story}
	p.add(f.ended(), differs(f.exit, exitOf(log))...)
	p.add(fmt.Sprintf("it was told, or logged: %s", f.says), lacks(append(told, log...), f.says)...)
	p.add(map[bool]string{true: "certbot got its certificate at once", false: "certbot got no certificate"}[f.issued], differs(f.issued, certErr == nil)...)
	p.add(map[bool]string{true: "nothing was left behind", false: "what was left behind stood in the journal"}[f.left == 0],
		append(differs(f.left, len(left)), differs(f.left, listedRecords(listed, d.records[0]))...)...)
	_, err = d.certificate(single)
	p.add("the next run, with nothing broken, got a certificate", because(err)...)
	d.proveHarmless(p)
	d.conclude(p)
}

// tell says something under a heading, in as many lines as it takes.
func (d *demo) tell(heading, text string) {
	for _, line := range wrap(text, width-len(heading)-2) {
		d.story.say(heading + "  " + line)
		heading = strings.Repeat(" ", len(heading))
	}
}

// next runs certbot again: for the certificate that it still owes, or to renew it.
func (d *demo) next(issued bool) {
	if !issued {
		d.story.say("", "Mended. Once more:")
		d.issue(single)
		return
	}
	d.watch.begin(silent)
	d.lab.FreshAccount() // the CA has to ask for proof again
	d.lock()
	d.story.say("", "Mended. The next renewal:")
	d.story.act("$ certbot " + strings.Join(lab.RenewArgs(), " "))
	d.watch.begin(full)
	d.certbot(lab.RenewArgs()...)
	d.watch.end()
}

// hooksEnd waits for hooks that outlive their certbot.
func (d *demo) hooksEnd() {
	for deadline := time.Now().Add(patience); len(lab.Running(lab.Hook("auth-hook"))) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.tb.Fatalf("demo: auth-hook is still at work after %v", patience)
		}
	}
}

// hookEnd is how the log tells of the end of an auth-hook.
var hookEnd = regexp.MustCompile(`(?m)^.* msg=(?:done|failed) program=auth-hook .*$`)

// exitOf returns auth-hook's exit code by its log, killed where it logged no end.
func exitOf(log []byte) int {
	line := hookEnd.Find(log)
	if line == nil {
		return killed
	}
	_, code, _ := strings.Cut(string(line[bytes.LastIndexByte(line, ' '):]), " exit=")
	exit, _ := strconv.Atoi(code) // a success has none
	return exit
}

func (f fault) ended() string {
	if f.exit == killed {
		return "auth-hook did not come to an end of its own"
	}
	return fmt.Sprintf("auth-hook ended with exit code %d", f.exit)
}

// differs, lacks and because return what contradicts a claim.

func differs[T comparable](want, got T) []string {
	if want == got {
		return nil
	}
	return []string{fmt.Sprintf("%v, not %v", got, want)}
}

func lacks(text []byte, words string) []string {
	if bytes.Contains(text, []byte(words)) {
		return nil
	}
	return []string{"it was not"}
}

func because(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

// listedRecords counts a record in the output of cleanup-hook --list, but for values that were not there.
func listedRecords(list []byte, record string) int {
	n := 0
	for line := range bytes.Lines(list) {
		if bytes.Contains(line, []byte(record)) && !bytes.HasPrefix(line, []byte("absent")) {
			n++
		}
	}
	return n
}
