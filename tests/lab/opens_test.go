package lab_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/certhook/certhook/tests/lab"
)

func TestWhoOpensAFileWaits(t *testing.T) {
	l := lab.New(t, lab.Options{})
	for _, at := range []string{t.TempDir(), lab.StateDir} { // a tmpfs and an overlay
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		var seen []string
		var pids []int
		stop := l.OnOpen(at, func(o lab.Open) {
			sizes := ""
			for _, name := range []string{"first", "second", "third"} {
				if info, err := os.Stat(filepath.Join(at, name)); err == nil {
					sizes += fmt.Sprint(info.Size(), " ")
				}
			}
			if want := map[string]string{"first": "0 ", "second": "2 0 ", "third": "2 2 0 ", ".": "2 2 0 "}; sizes != want[o.Name] {
				t.Errorf("at %s the files have sizes %q, want %q", o.Name, sizes, want[o.Name])
			}
			seen, pids = append(seen, o.Name), append(pids, o.PID)
		})
		cmd := exec.Command("sh", "-c", `cd "$1"; echo 1 >first; echo 2 >second; : >third; ls`, "sh", at)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		stop()
		if want := []string{"first", "second", "third", "."}; !slices.Equal(seen, want) {
			t.Errorf("%s: opened %q, want %q", at, seen, want)
		}
		if len(pids) > 0 && pids[0] != cmd.Process.Pid {
			t.Errorf("process %d, want %d", pids[0], cmd.Process.Pid)
		}
		if err := exec.Command("touch", filepath.Join(at, "fourth")).Run(); err != nil {
			t.Error(err)
		}
	}
}
