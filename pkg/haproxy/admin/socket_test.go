package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

const (
	createdText   = "Transaction created for certificate " + testName + "!\n\n"
	committedText = "Committing " + testName + ".\nSuccess!\n\n"
	abortedText   = "Transaction aborted for certificate '" + testName + "'!\n\n"
	listText      = "# transaction\n*/certs/b.pem\n# filename\n" + testName + "\n/certs/b.pem\n\n"
	describedText = "Filename: " + testName + "\nStatus: Used\nSHA1 FingerPrint: 01\n\n"
	processText   = "Name: HAProxy\nVersion: 2.6.12\nPid: 7\nUptime_sec: 2\n\n"
)

func TestReplies(t *testing.T) {
	locked := "\nOperations on certificates are currently locked!\n\n"
	refusal := errors.New("any refusal")
	for _, tt := range []struct {
		name, command string
		act           func(*net.UnixConn)
		want          error
	}{
		{"list", showText, say(listText), nil},
		{"list in pieces", showText, say("# tran", "saction\n*/certs/b.pem\n# filename\n"+testName, "\n/certs", "/b.pem\n", "\n"), nil},
		{"list that ends early", showText, say("# filename\n" + testName + "\n"), ErrEmpty},
		{"list cut within a name", showText, say("# filename\n/cer"), ErrEmpty},
		{"description in pieces", detailText, say("Filename: "+testName, "\nStatus: Used\n", "SHA1 FingerPrint: 01\n", "\n"), nil},
		{"description that ends early", detailText, say("Filename: " + testName + "\nStatus: Used\n"), ErrEmpty},
		{"description of another", detailText, say("Filename: /certs/b.pem\nStatus: Used\n\n"), refusal},
		{"process that ends early", infoText, say("Name: HAProxy\nVersion: 2.6.12\nPid: 7\nUptime_sec: 2"), ErrEmpty},

		{"set", setText, say(createdText), nil},
		{"set in pieces", setText, say("Transaction cre", "ated for certificate "+testName, "!", "\n\n"), nil},
		{"set for another", setText, say("Transaction created for certificate /certs/b.pem!\n\n"), refusal},
		{"set, and more", setText, say(createdText + "Unknown command\n\n"), refusal},
		{"set, and something before", setText, say("warning\n" + createdText), refusal},
		{"set has updated", setText, say("Transaction updated for certificate " + testName + "!\n\n"), &Foreign{testName}},
		{"set is locked", setText, say("Can't update the certificate!" + locked), ErrLocked},
		{"set while another transaction is open, later versions", setText, say("The ongoing transaction is about '/certs/b.pem' but you are trying to set '" + testName + "'\nCan't update " + testName + "!\n\n"), ErrLocked},
		{"set is too big, later versions", setText, say("The command is too big for the buffer size. Please change tune.bufsize in the configuration to use a bigger command.\n\n"), ErrTooLarge},
		{"set gets a success of another command", setText, say("Success!\n\n"), refusal},
		{"set before HAProxy had payloads", setText, say("Unknown command.\n\n"), refusal},

		{"commit", commitText, say(committedText), nil},
		{"commit with dots", commitText, say("Committing "+testName, "..........", "..........", ".....", "\nSuccess", "!\n\n"), nil},
		{"commit without dots", commitText, say("Committing " + testName + "\nSuccess!\n\n"), nil},
		{"commit with warnings", commitText, say("Committing "+testName, ".\nwarning: this and that\nSuccess!\n\n"), nil},
		{"commit of another", commitText, say("Committing /certs/b.pem.\nSuccess!\n\n"), refusal},
		{"commit of a longer name", commitText, say("Committing " + testName + ".rsa.\nSuccess!\n\n"), refusal},
		{"commit says nothing but success", commitText, say("Success!\n\n"), refusal},
		{"commit has nothing but dots", commitText, say("..\nSuccess!\n\n"), refusal},
		{"commit ends with something else", commitText, say("Committing " + testName + ".\nSuccess!\nCan't commit!\n\n"), refusal},
		{"commit has a success in its middle", commitText, say("Committing " + testName + ".\nno Success!\n\n"), refusal},
		{"commit is cut", commitText, say("Committing "+testName, "...."), ErrUnfinished},
		{"commit is locked", commitText, say("Can't commit the certificate!" + locked), ErrLocked},

		{"abort", abortText, say(abortedText), nil},
		{"abort of none", abortText, say("No ongoing transaction!\n\n"), nil},
		{"abort of another", abortText, say("Transaction aborted for certificate '/certs/b.pem'!\n\n"), refusal},
		{"abort is locked", abortText, say("Can't abort!" + locked), ErrLocked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := calls[tt.command](t.Context(), scripted(t, tt.command, tt.act))
			switch foreign, ok := tt.want.(*Foreign); {
			case tt.want == refusal:
				if r, ok := errors.AsType[*Refused](err); !ok || r.Command != strings.TrimSuffix(strings.Split(tt.command, "\n")[0], " <<") {
					t.Errorf("%v, want a refusal", err)
				}
				for _, known := range []error{ErrDown, ErrLocked, ErrEmpty, ErrUnknownName, ErrNoTransaction, ErrUnfinished, ErrPermission, ErrTooLarge} {
					if errors.Is(err, known) {
						t.Errorf("%v is %q", err, known)
					}
				}
			case ok:
				if got, ok := errors.AsType[*Foreign](err); !ok || *got != *foreign {
					t.Errorf("%v, want %v", err, foreign)
				}
			case !errors.Is(err, tt.want):
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// Whatever the command, a reply that does not come is one kind of failure; only that of a commit is worse.
func TestNoReply(t *testing.T) {
	for name, act := range map[string]func(*net.UnixConn){
		"closed":         func(*net.UnixConn) {},
		"silent":         hang(""),
		"silent halfway": hang("Transac"),
		// A connection that is never closed leaves open whether all has been said.
		"not closed": hang("No ongoing transaction!\n\n"),
	} {
		for command, call := range calls {
			t.Run(name+"/"+strings.Fields(command)[0], func(t *testing.T) {
				t.Parallel()
				c := scripted(t, command, act)
				c.Timeout = 100 * time.Millisecond
				err := call(t.Context(), c)
				if !errors.Is(err, ErrEmpty) || errors.Is(err, ErrDown) || errors.Is(err, ErrUnfinished) != (command == commitText) {
					t.Error(err)
				}
				if name != "closed" && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("not for the time: %v", err)
				}
			})
		}
	}
	t.Run("reset", func(t *testing.T) {
		path := socketPath(t)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 1)) // the rest is there unread: the kernel resets the connection
				conn.Close()
			}
		}()
		for _, call := range calls {
			if err := call(t.Context(), &Client{Path: path}); !errors.Is(err, ErrEmpty) || !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		}
	})
}

// A refusal that is on its way counts although the rest of the command was not read.
func TestReplyBeforeReset(t *testing.T) {
	path := socketPath(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1))
		_, _ = io.WriteString(conn, "Permission denied\n\n")
		conn.Close()
	}()
	if err := calls[setText](t.Context(), &Client{Path: path}); !errors.Is(err, ErrPermission) {
		t.Error(err)
	}
}

// A caller that gives up is heard at once, also where HAProxy keeps on talking.
func TestCancel(t *testing.T) {
	for command, call := range calls {
		if command == commitText {
			continue
		}
		ctx, cancel := context.WithCancel(t.Context())
		c := scripted(t, command, func(conn *net.UnixConn) {
			cancel()
			hang("")(conn)
		})
		c.Timeout = time.Hour
		if err := call(ctx, c); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrEmpty) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// Dots count as signs of life: what takes longer than the time for one reply goes on while they come.
func TestSlowCommit(t *testing.T) {
	const step = 25 * time.Millisecond
	c := scripted(t, commitText, func(conn *net.UnixConn) {
		_, _ = io.WriteString(conn, "Committing "+testName)
		for range 40 {
			time.Sleep(step)
			_, _ = io.WriteString(conn, ".")
		}
		_, _ = io.WriteString(conn, "\nSuccess!\n\n")
	})
	c.Timeout = 20 * step / patience
	if err := c.Commit(t.Context(), testName); err != nil {
		t.Error(err)
	}
}

// A reply without end is given up.
func TestHugeReply(t *testing.T) {
	var written int
	done := make(chan struct{})
	c := scripted(t, showText, func(conn *net.UnixConn) {
		defer close(done)
		chunk := []byte("# filename\n" + strings.Repeat("/certs/a.pem\n", 10000))
		for {
			n, err := conn.Write(chunk)
			written += n
			if err != nil {
				return
			}
		}
	})
	c.Timeout = time.Minute
	if _, err := c.List(t.Context()); err == nil || errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	<-done
	if written > 2*maxReply {
		t.Errorf("%d octets were taken", written)
	}
}

// Nothing is sent of what HAProxy would take apart.
func TestNotSent(t *testing.T) {
	c, ctx := scripted(t, "", nil), t.Context()
	for _, name := range []string{
		"", "a b", "a\tb", "a\n", "\x00", "a\x7f", "a\u00a0b", "a\u2028b", "a\u0085b",
		"/a.pem;quit", "/a.pem <<", "a<b", `a\b`, "/a.pem\nshow info",
	} {
		_, show := c.Show(ctx, name)
		_, all := c.ShowAll(ctx, []string{testName, name})
		for i, err := range []error{c.Set(ctx, name, []byte(testPEM)), c.Commit(ctx, name), c.Abort(ctx, name), show, all} {
			if fault.KindOf(err) != fault.Lineage || fault.HintOf(err) == "" {
				t.Errorf("%q, %d: %v", name, i, err)
			}
		}
	}
	for _, pem := range []string{
		"", "\n", "a", strings.TrimSuffix(testPEM, "\n"), testPEM + "\n", "\n" + testPEM, strings.Replace(testPEM, "\n", "\n\n", 1),
		strings.Replace(testPEM, "\n", "\n \n", 1), strings.Replace(testPEM, "\n", "\n\t\n", 1), strings.ReplaceAll(testPEM, "\n", "\r\n"),
		strings.Replace(testPEM, "M", "\x00", 1), strings.Replace(testPEM, "M", "\x1b", 1),
	} {
		if err := c.Set(ctx, testName, []byte(pem)); err == nil || strings.Contains(err.Error(), "MIGHAgEA") {
			t.Errorf("%q: %v", pem, err)
		}
	}
}

// Names that look odd and are none.
func TestOddNames(t *testing.T) {
	for _, name := range []string{"certs//a.pem", "./a.pem", "/Zertifikate/müller.pem", "a'b\"c#$%.pem", "@store/a", "\xff.pem"} {
		c := scripted(t, "commit ssl cert "+name+"\n", say("Committing "+name+".\nSuccess!\n\n"))
		if err := c.Commit(t.Context(), name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Somebody who is not HAProxy may repeat what was sent, or talk without end: neither gets into an error.
func TestErrorsAreDiscreet(t *testing.T) {
	c := scripted(t, setText, say("Unknown command: "+testPEM+strings.Repeat("blah ", 10000)+"\n\n"))
	err := c.Set(t.Context(), testName, []byte(testPEM))
	refused(t, err, "Unknown command")
	r, _ := errors.AsType[*Refused](err)
	for _, text := range []string{err.Error(), r.Reply} {
		if strings.Contains(text, "MIGHAgEA") {
			t.Errorf("the key is in %q", text)
		}
	}
	if len(err.Error()) > 1000 {
		t.Errorf("an error of %d octets", len(err.Error()))
	}
}

// A socket that may not be used is a matter of permissions, not of HAProxy.
func TestSocketPermission(t *testing.T) {
	path := socketPath(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		// To root every file is open: this thread, which ends with the goroutine, is somebody else's for the files.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
			}
		}
		done <- calls[showText](context.WithoutCancel(t.Context()), &Client{Path: path})
	}()
	if err := <-done; !errors.Is(err, ErrPermission) || fault.KindOf(err) != fault.Usage || fault.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
}

// Where too many wait already the kernel takes no more: HAProxy is there, and busy.
func TestFullQueue(t *testing.T) {
	path := socketPath(t)
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := net.Dial("unix", path)
		if err != nil {
			break
		}
		defer conn.Close()
	}
	for command, call := range calls {
		if err := call(t.Context(), &Client{Path: path}); !errors.Is(err, ErrEmpty) || errors.Is(err, ErrDown) {
			t.Errorf("%q: %v", command, err)
		}
	}
}
