package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/tests/cloudflaretest"
	"github.com/certhook/certhook/tests/lab"
)

// A disk that fills up while the value is on its way to the provider: the journal says since before that it may be
// there, which suffices to remove it, and to find out later that it is gone.
func TestDiskFillsDuringTheWrite(t *testing.T) {
	s := sceneFor(t, lab.Options{}, "svc.example.com", later)
	must(t, os.Mkdir(lab.StateDir, 0o700))
	must(t, unix.Mount("tmpfs", lab.StateDir, "tmpfs", 0, "mode=0700,size=64k"))
	filler := filepath.Join(lab.StateDir, "filler")
	s.API.Intercept(func(c cloudflaretest.Call, m cloudflaretest.Moment) bool {
		if c.Method == "POST" && m == cloudflaretest.Arrived {
			_ = os.WriteFile(filler, make([]byte, 1<<20), 0o600) // as far as there is room
		}
		return true
	})
	certbot, call := newCaller(t), single("svc.example.com", value("ours"))
	for _, step := range []struct {
		hook string
		left []string
	}{{"auth-hook", []string{call.value}}, {"cleanup-hook", nil}} {
		r, err := certbot.hook(step.hook, call)
		must(t, err)
		if r.Code != 10 || !strings.Contains(r.Stderr, "no space left on device") || !strings.Contains(r.Stderr, "hint: ") {
			t.Errorf("%s: %v", step.hook, r)
		}
		if got := s.ours(); !slices.Equal(got, step.left) {
			t.Errorf("%s: the values are %q, want %q", step.hook, got, step.left)
		}
		if live := inFlight(t); !slices.Equal(live, []string{"writing " + s.records[0]}) {
			t.Errorf("%s: the journal has %q", step.hook, live)
		}
	}
	certbot.end()

	must(t, os.Remove(filler))
	s.API.Intercept(nil)
	next := newCaller(t)
	next.mustHook("auth-hook", single(later, value("later")))
	next.mustHook("cleanup-hook", single(later, value("later")))
}
