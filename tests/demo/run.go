package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/certhook/certhook/tests/lab"
)

const certbot = "/usr/bin/certbot"

// patience is how long any program of the demo may take.
const patience = 2 * time.Minute

// run is try for a program that has to go well. If it fails so does the demo, after a look at what was printed
// and logged.
func (d *demo) run(tell func(line string), program string, args ...string) (printed []byte) {
	printed, err := d.try(tell, program, args...)
	if err != nil {
		d.fail(program, printed, err)
	}
	return printed
}

// try runs a program with the environment of a bare timer and tells its output by the line, as it comes.
func (d *demo) try(tell func(line string), program string, args ...string) (printed []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out := &output{tell: tell}
	cmd := lab.Command(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	d.printed = append(d.printed, out.all.Bytes()...)
	return out.all.Bytes(), err
}

func (d *demo) fail(program string, printed []byte, err error) {
	log, _ := os.ReadFile(lab.HookLog) // where there is none nothing was logged
	name := filepath.Base(program)
	d.tb.Fatalf("\ndemo: %s failed: %v\n\n--- %s printed\n%s\n--- the hooks logged\n%s", name, err, name, printed, log)
}

// certbot runs certbot and tells what that says about its hooks.
func (d *demo) certbot(args ...string) {
	if printed, err := d.tryCertbot(args...); err != nil {
		d.fail("certbot", printed, err)
	}
}

func (d *demo) tryCertbot(args ...string) (printed []byte, err error) {
	var h hookReader
	return d.try(func(line string) {
		if what := h.read(line); what != "" {
			d.watch.say("certbot", what)
		}
	}, certbot, args...)
}

// output keeps what a program prints and hands on every line.
type output struct {
	tell func(string)
	all  bytes.Buffer
	part []byte // of a line
}

func (o *output) Write(p []byte) (int, error) {
	o.all.Write(p)
	o.part = append(o.part, p...)
	for {
		line, rest, found := bytes.Cut(o.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		o.tell(string(line))
		o.part = rest
	}
}

// hookReader takes from certbot's output which hook it ran, what that printed, and the success at the end.
type hookReader struct {
	hook, domain string // whose output comes next
}

var hookRan = regexp.MustCompile(`^Hook '--manual-(auth|cleanup)-hook' for (\S+) (ran with|reported error code) (.*)$`)

// read returns what to tell of a line, "" for nothing.
func (h *hookReader) read(line string) string {
	if m := hookRan.FindStringSubmatch(line); m != nil {
		h.hook, h.domain = m[1]+"-hook", m[2]
		if m[3] == "ran with" {
			return ""
		}
		return h.about("exit code " + m[4])
	}
	if strings.HasPrefix(line, "Successfully received certificate") {
		return "has received the certificate"
	}
	if h.hook == "" || !strings.HasPrefix(line, " ") {
		h.hook = ""
		return ""
	}
	// Certbot indents. The hook begins with its name, and often goes on with the domain.
	text := strings.TrimPrefix(strings.TrimSpace(line), h.hook+": ")
	return h.about(strings.TrimPrefix(text, h.domain+": "))
}

func (h *hookReader) about(text string) string { return h.hook + " " + h.domain + ": " + text }
