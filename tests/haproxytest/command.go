package haproxytest

import (
	"io"
	"net"
	"strings"
	"time"
)

// Command sends one command to the stats socket and returns the reply.
func (h *HAProxy) Command(command string) string {
	h.tb.Helper()
	return h.ask(h.AdminSocket, command+"\n")
}

// MasterCommand sends one command to the master's socket and returns the reply.
func (h *HAProxy) MasterCommand(command string) string {
	h.tb.Helper()
	return h.ask(h.MasterSocket, command+";quit\n") // it closes no connection by itself
}

func (h *HAProxy) ask(socket, text string) string {
	h.tb.Helper()
	reply, err := ask(socket, text)
	if err != nil {
		h.tb.Fatalf("haproxytest: %q: %v", text, err)
	}
	return reply
}

func ask(socket, text string) (string, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	reply, err := io.ReadAll(conn)
	return strings.TrimSpace(string(reply)), err
}
