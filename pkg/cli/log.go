package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// OpenLog opens a log file for appending and makes its directory (0700) and itself (0600) where they are
// missing. Symbolic links are not followed.
func OpenLog(path string) (io.WriteCloser, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(dir); err != nil {
		return nil, err
	} else if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%q is a symbolic link", dir)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	return f, nil
}

// NewLogger returns a logger that writes everything to file (which may be nil) and, for people, warnings
// to stderr, or everything when verbose. Certbot shows a hook's stderr as "error output", so a quiet run
// leaves it empty. A file that cannot be written is warned of once.
func NewLogger(program string, file, stderr io.Writer, verbose bool) *slog.Logger {
	people := &peopleHandler{w: stderr, program: program, level: slog.LevelWarn, mu: new(sync.Mutex)}
	if verbose {
		people.level = slog.LevelDebug
	}
	if file == nil {
		return slog.New(people)
	}
	file = &complaining{Writer: file, complain: func(err error) { slog.New(people).Warn("the log is not complete", "error", err) }}
	machine := slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}).
		WithAttrs([]slog.Attr{slog.String("program", program), slog.Int("pid", os.Getpid())})
	return slog.New(slog.NewMultiHandler(machine, people))
}

// complaining tells of its first failure.
type complaining struct {
	io.Writer
	complain func(error)
	once     sync.Once
}

func (c *complaining) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	if err != nil {
		c.once.Do(func() { c.complain(err) })
	}
	return n, err
}

// peopleHandler prints a record: program, "warning:" where it is one, message, key=value pairs. Further lines of
// a message bear the program's name too.
type peopleHandler struct {
	w       io.Writer
	program string
	level   slog.Level
	attrs   []slog.Attr
	mu      *sync.Mutex
}

// Enabled leaves errors out: a program ends with them, and Report tells them.
func (h *peopleHandler) Enabled(_ context.Context, l slog.Level) bool {
	return l >= h.level && l < slog.LevelError
}

func (h *peopleHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.program + ": ")
	if r.Level >= slog.LevelWarn {
		b.WriteString("warning: ")
	}
	b.WriteString(strings.ReplaceAll(r.Message, "\n", "\n"+h.program+":   "))
	add := func(a slog.Attr) bool {
		if value := a.Value.Resolve(); value.Kind() == slog.KindDuration && value.Duration() == 0 || value.String() == "" {
			return true
		}
		fmt.Fprintf(&b, " %s=%s", a.Key, quoted(a.Value))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String()+"\n")
	return err
}

func quoted(v slog.Value) string {
	v = v.Resolve()
	if v.Kind() == slog.KindDuration {
		return v.Duration().Round(time.Millisecond).String()
	}
	if s := v.String(); !strings.ContainsAny(s, " \t\n\"=") {
		return s
	}
	return fmt.Sprintf("%q", v.String())
}

func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	clone := *h
	clone.attrs = append(clone.attrs[:len(clone.attrs):len(clone.attrs)], attrs...)
	return &clone
}

func (h *peopleHandler) WithGroup(string) slog.Handler { return h }
