package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// width is how many columns a line may take.
const width = 100

// story prints lines as things happen, from any goroutine.
type story struct {
	w      io.Writer
	began  time.Time // the clock's zero
	colour bool

	mu sync.Mutex
}

func newStory(to *os.File) *story {
	_, err := unix.IoctlGetTermios(int(to.Fd()), unix.TCGETS)
	return &story{w: to, began: time.Now(), colour: err == nil && os.Getenv("NO_COLOR") == ""}
}

// say prints lines as they are.
func (s *story) say(lines ...string) {
	for _, line := range lines {
		s.print("", line)
	}
}

// act begins a part of the story, by its title or by what is typed.
func (s *story) act(title string) {
	s.print("", "")
	s.print(bold, title)
}

// event says when somebody did something, in as many lines as it takes.
func (s *story) event(at time.Time, who, what string) {
	head := fmt.Sprintf("%6.2f s  %-7s  ", at.Sub(s.began).Seconds(), who)
	lines := []string{what}
	if room := width - len(head); utf8.RuneCountInString(what) > room {
		lines = wrap(what, room)
	}
	for i, line := range lines {
		if i > 0 {
			head = strings.Repeat(" ", len(head))
		}
		s.print("", head+line)
	}
}

// wrap breaks a text into lines of at most so many characters, at spaces.
func wrap(text string, most int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last]+" "+word) <= most {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// proof says that something holds, or what contradicts it.
func (s *story) proof(claim string, but []string) {
	if len(but) == 0 {
		s.print(green, "  ok      "+claim)
		return
	}
	s.print(red, "  FAILED  "+claim)
	for _, b := range but {
		s.print("", "          but: "+b)
	}
}

const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (s *story) print(colour, line string) {
	line = clip(line, width)
	if s.colour && colour != "" {
		line = colour + line + plain
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.w, line)
}

// clip shortens a line to so many characters and shows that it did.
func clip(line string, most int) string {
	line = strings.TrimRight(line, " ")
	if utf8.RuneCountInString(line) <= most {
		return line
	}
	return string([]rune(line)[:most-1]) + "…"
}
