package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// What a HAProxy in order cannot be made to do is done by a socket that follows a script.

const (
	testName = "/certs/a.pem"
	testPEM  = "-----BEGIN CERTIFICATE-----\nMIIBizCCATGgAwIBAgIUEVFXQZQFqzp4\n-----END CERTIFICATE-----\n" +
		"-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----\n"

	showText   = "show ssl cert\n"
	detailText = "show ssl cert " + testName + "\n"
	setText    = "set ssl cert " + testName + " <<\n" + testPEM + "\n"
	commitText = "commit ssl cert " + testName + "\n"
	abortText  = "abort ssl cert " + testName + "\n"
	infoText   = "show info\n"
)

// calls are all commands by what they send.
var calls = map[string]func(context.Context, *Client) error{
	showText:   func(ctx context.Context, c *Client) error { _, err := c.List(ctx); return err },
	detailText: func(ctx context.Context, c *Client) error { _, err := c.Show(ctx, testName); return err },
	setText:    func(ctx context.Context, c *Client) error { return c.Set(ctx, testName, []byte(testPEM)) },
	commitText: func(ctx context.Context, c *Client) error { return c.Commit(ctx, testName) },
	abortText:  func(ctx context.Context, c *Client) error { return c.Abort(ctx, testName) },
	infoText:   func(ctx context.Context, c *Client) error { _, err := c.Process(ctx); return err },
}

// socketPath is a path that is short enough.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "admin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// scripted is a client of a socket that expects exactly one connection with exactly one command, kept open in both
// directions, and then does as it is told. It closes the connection at the end.
func scripted(t *testing.T, command string, act func(*net.UnixConn)) *Client {
	t.Helper()
	path := socketPath(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				if n == 0 && command != "" {
					t.Error("nobody has connected")
				}
				return
			}
			if n > 0 || command == "" {
				t.Error("a connection too many")
			}
			answer(t, conn.(*net.UnixConn), command, act)
		}
	})
	t.Cleanup(func() {
		listener.Close()
		work.Wait()
	})
	return &Client{Path: path, Timeout: 10 * time.Second}
}

func answer(t *testing.T, conn *net.UnixConn, command string, act func(*net.UnixConn)) {
	defer conn.Close()
	if command == "" {
		return
	}
	got := make([]byte, len(command))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != command {
		t.Errorf("the command is %q, %v, want %q", got, err, command)
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := conn.Read(got[:1]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d octets after the command, %v: it may neither go on nor be half closed", n, err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	act(conn)
}

// say replies in pieces, with a pause between.
func say(pieces ...string) func(*net.UnixConn) {
	return func(conn *net.UnixConn) {
		for i, piece := range pieces {
			if i > 0 {
				time.Sleep(5 * time.Millisecond)
			}
			_, _ = io.WriteString(conn, piece)
		}
	}
}

// hang says something and then nothing until the client goes away.
func hang(text string) func(*net.UnixConn) {
	return func(conn *net.UnixConn) {
		_, _ = io.WriteString(conn, text)
		_, _ = io.Copy(io.Discard, conn)
	}
}
