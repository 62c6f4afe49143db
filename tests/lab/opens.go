package lab

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Open is a file or folder about to be opened by a process. One that the process makes is there already, empty.
type Open struct {
	PID  int
	Name string // without the folder; "." for the folder itself
}

// OnOpen has every process but this one wait whenever it opens a folder or a file in it, until on has returned:
// a process that writes files by replacing them can be stopped before and after each. The folder has to exist.
// It ends with stop. on is called by one goroutine and must not open anything in the folder itself.
func (l *Lab) OnOpen(folder string, on func(Open)) (stop func()) {
	l.tb.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD|unix.FAN_MARK_ONLYDIR,
			unix.FAN_OPEN_PERM|unix.FAN_EVENT_ON_CHILD|unix.FAN_ONDIR, unix.AT_FDCWD, folder)
	}
	if err != nil {
		l.tb.Fatalf("lab: hold what opens files in %s: %v", folder, err)
	}
	events := os.NewFile(uintptr(fd), "fanotify")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := answerOpens(events, folder, on); !errors.Is(err, os.ErrClosed) {
			l.tb.Errorf("lab: hold what opens files in %s: %v", folder, err)
		}
	}()
	return func() {
		events.Close() // whoever still waits goes on
		<-done
	}
}

// answerOpens reads events (fanotify(7)) until the file is closed.
func answerOpens(events *os.File, folder string, on func(Open)) error {
	buf := make([]byte, 4096)
	for {
		n, err := events.Read(buf)
		if err != nil {
			return err
		}
		for rest := bytes.NewReader(buf[:n]); rest.Len() > 0; {
			var e unix.FanotifyEventMetadata
			if err := binary.Read(rest, binary.NativeEndian, &e); err != nil {
				return err
			}
			if e.Fd < 0 {
				return errors.New("events were lost")
			}
			path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", e.Fd))
			if err != nil {
				return err
			}
			name, err := filepath.Rel(folder, path)
			if err != nil {
				return err
			}
			if int(e.Pid) != os.Getpid() {
				on(Open{PID: int(e.Pid), Name: name})
			}
			err = binary.Write(events, binary.NativeEndian, unix.FanotifyResponse{Fd: e.Fd, Response: unix.FAN_ALLOW})
			unix.Close(int(e.Fd))
			if err != nil {
				return err
			}
		}
	}
}
