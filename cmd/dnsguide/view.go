package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/guide"
)

// view shows results while they come: as a table that is drawn anew on a terminal, as a line for each change
// elsewhere, and as JSON once at the end.
type view struct {
	w        io.Writer
	asJSON   bool
	verbose  bool
	whole    bool // all names that are asked about could be read
	waiting  bool
	terminal bool
	began    time.Time
	drawn    int               // lines of the table on the screen
	told     map[string]string // by name and kind: the line told last
}

func newView(w io.Writer, asJSON, verbose bool, mode string, whole bool) *view {
	return &view{
		w: w, asJSON: asJSON, verbose: verbose, whole: whole, terminal: isTerminal(w), began: time.Now(), told: map[string]string{},
		waiting: mode == config.SetupWait || mode == config.SetupWebhook,
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// pass shows one pass of a wait.
func (v *view) pass(results []guide.Result) {
	switch {
	case v.asJSON:
	case v.terminal:
		v.draw(results)
	default:
		v.changes(results)
	}
}

// end shows the outcome.
func (v *view) end(results []guide.Result) error {
	switch {
	case v.asJSON:
		return printJSON(v.w, struct {
			OK      bool           `json:"ok"`
			Results []guide.Result `json:"results"`
		}{v.whole && guide.Err(results) == nil, results})
	case v.waiting && v.terminal:
		v.erase()
		guide.WriteReport(v.w, results, v.verbose)
	case v.waiting:
		v.changes(results)
	default:
		guide.WriteReport(v.w, results, v.verbose)
	}
	return nil
}

// draw replaces the table on the screen. A line longer than the screen is cut, since a wrapped one could not
// be counted, and a table that is taller as well, since what has scrolled away cannot be erased: what is still
// open comes first.
func (v *view) draw(results []guide.Result) {
	v.erase()
	width, height := 80, 24
	if f, ok := v.w.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
			width, height = int(size.Col), int(size.Row)
		}
	}
	var open, fine []string
	for _, r := range results {
		for _, f := range r.Findings {
			line := []rune(f.Line(r.Name))
			text := string(line[:min(len(line), width-1)])
			if f.Fine() {
				fine = append(fine, text)
			} else {
				open = append(open, text)
			}
		}
	}
	lines := append(open, fine...)
	if most := max(1, height-3); len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("… and %d more", len(lines)-most))
	}
	lines = append(lines, fmt.Sprintf("waiting for %s", time.Since(v.began).Round(time.Second)))
	io.WriteString(v.w, strings.Join(lines, "\n")+"\n")
	v.drawn = len(lines)
}

// erase takes the table off the screen.
func (v *view) erase() {
	if v.drawn > 0 {
		fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// changes prints what is new since the last pass.
func (v *view) changes(results []guide.Result) {
	for _, r := range results {
		for _, f := range r.Findings {
			line, key := f.Line(r.Name), r.Name+"\x00"+string(f.Kind)
			text := strings.Join(append([]string{line}, f.More(v.verbose)...), "\n          ")
			if v.told[key] != text {
				v.told[key] = text
				fmt.Fprintln(v.w, text)
			}
		}
	}
}
