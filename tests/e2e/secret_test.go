package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// The token is nowhere but where it was configured: not in a message or log of ours or certbot's, nor in a
// process's arguments or environment, nor in the journal at any time, whether things go well or not.
func TestTokenStaysSecret(t *testing.T) {
	s := newScene(t, lab.Options{CallDelay: 300 * time.Millisecond}, lab.Target("svc.example.com", lab.AliasZone))
	s.Delegate("svc.example.com")
	args := append(lab.IssueArgsWith(lab.Hook("auth-hook")+" -v", lab.Hook("cleanup-hook")+" -v", "svc.example.com"), "-v")
	watch := startWatch(t)

	check := func(when string, r lab.Result) {
		t.Helper()
		for what, text := range map[string]string{"stdout": r.Stdout, "stderr": r.Stderr} {
			if lab.ShowsToken([]byte(text)) {
				t.Errorf("%s: the token is in certbot's %s:\n%s", when, what, text)
			}
		}
		if found, _, err := lab.FilesWithToken(lab.Written()...); err != nil || len(found) > 0 {
			t.Errorf("%s: the token is in %q (%v)", when, found, err)
		}
	}

	for when, fault := range map[string]cloudflaretest.Fault{
		"refused":     cloudflaretest.Forbidden.On("POST", cloudflaretest.RecordSet),
		"not found":   {Path: cloudflaretest.Zones, Status: 404, Body: "{}"},
		"token named": {Path: cloudflaretest.Zones, Status: 403, Body: `{"success":false,"errors":[{"code":9109,"message":"Invalid access token ` + lab.Token + `"}]}`},
	} {
		lift := s.API.Break(fault)
		r := s.Certbot(args...)
		lift()
		if r.Code == 0 {
			t.Errorf("%s: certbot had success", when)
		}
		check("after "+when, r)
	}
	r := s.Certbot(args...)
	if r.Code != 0 {
		t.Errorf("certbot: %v", r)
	}
	check("after a success", r)

	watch.stop()
	if !watch.sawHook || !watch.sawJournal {
		t.Errorf("the watch saw no hook (%v) or no journal (%v)", watch.sawHook, watch.sawJournal)
	}
	if found, _, err := lab.FilesWithToken(filepath.Dir(lab.SettingsFile)); err != nil || len(found) != 1 {
		t.Error("the search does not find the token where it is")
	}
}

// watch looks again and again at all processes and at the journal.
type watch struct {
	t                   *testing.T
	sawHook, sawJournal bool // valid after stop
	quit                chan struct{}
	done                sync.WaitGroup
}

func startWatch(t *testing.T) *watch {
	w := &watch{t: t, quit: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-tick.C:
			case <-w.quit:
				return
			}
		}
	})
	return w
}

func (w *watch) stop() {
	close(w.quit)
	w.done.Wait()
}

// look ignores errors: processes and files come and go.
func (w *watch) look() {
	journal, _ := filepath.Glob(lab.StateDir + "/journal/*.json")
	arguments, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range append(append(journal, arguments...), environments...) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if lab.ShowsToken(text) {
			w.t.Errorf("the token is in %s: %q", path, text)
		}
		if strings.HasPrefix(path, lab.StateDir) {
			w.sawJournal = true
		} else if bytes.HasPrefix(text, []byte(lab.Hook("auth-hook"))) {
			w.sawHook = true
		}
	}
}
