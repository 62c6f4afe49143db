package challenge

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/fault"
)

func TestListAndSweepNow(t *testing.T) {
	alive, _ := process(t)
	dead, end := process(t)
	end()
	elsewhere := alive
	elsewhere.Boot = "another"
	for name, tt := range map[string]struct {
		run   certbot.Run
		state string
		swept bool
	}{
		"running":        {alive, "running", false},
		"dead":           {dead, "dead", true},
		"cannot be told": {elsewhere, "unknown", false}, // it may be at work in another container
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			put(t, l, tt.run, time.Minute, nil)
			items, err := l.List()
			if err != nil || len(items) != 1 {
				t.Fatalf("List = %+v, %v", items, err)
			}
			if i := items[0]; i.Run != tt.state || i.Record != record("a.example.com") || i.Value != val(1) || i.State != "written" {
				t.Errorf("listed as %+v", i)
			}
			text, err := l.SweepNow(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.swept {
				l.wantValues(t, "a.example.com")
			} else {
				l.wantValues(t, "a.example.com", val(1))
			}
			if items, _ := l.List(); (len(items) == 0) != tt.swept {
				t.Errorf("%q, and then listed: %+v", text, items)
			}
		})
	}
}

func TestSweepNowTellsWhatIsLeft(t *testing.T) {
	dead, end := process(t)
	end()
	l := newLab(t)
	put(t, l, dead, 0, nil)
	l.provider.fail["remove"] = errRefused
	_, err := l.SweepNow(t.Context())
	wantKind(t, err, fault.Provider, "not removed")
	if got := l.live(t); len(got) != 1 {
		t.Errorf("the journal holds %q", got)
	}
}

func TestListTellsOfDamagedFiles(t *testing.T) {
	dead, end := process(t)
	end()
	l := newLab(t)
	put(t, l, dead, 0, nil)
	if err := os.WriteFile(filepath.Join(l.state, "journal", "0.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	items, err := l.List()
	wantKind(t, err, fault.Usage, "0.json")
	if len(items) != 1 {
		t.Errorf("the other files' items: %+v", items)
	}
}
