package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// List is what HAProxy has in memory.
type List struct {
	Names       []string // files as the configuration names them
	Transaction string   // the file with an open transaction; "" for none
}

// List asks for all certificates.
func (c *Client) List(ctx context.Context) (List, error) {
	reply, err := c.ask(ctx, "show ssl cert\n")
	if err != nil {
		return List{}, fmt.Errorf("list HAProxy's certificates: %w", err)
	}
	return parseList(reply)
}

func parseList(reply string) (List, error) {
	var l List
	known := false
	for line := range strings.Lines(reply) {
		switch line = strings.TrimSpace(line); {
		case line == "# transaction", line == "# filename":
			known = true
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "*"):
			l.Transaction = line[1:]
		default:
			l.Names = append(l.Names, line)
		}
	}
	if !known {
		return List{}, &Refused{"show ssl cert", reply}
	}
	return l, nil
}

// Certificate is one certificate in memory. Of one whose description exceeds HAProxy's buffer the last fields are
// empty.
type Certificate struct {
	Name                string
	Status              string // "Used", "Unused" or "Empty"
	Serial, SHA1        string // hexadecimal, upper case
	NotBefore, NotAfter time.Time
	SANs                []string
}

// Show asks for one certificate; "*" before the name stands for the open transaction.
func (c *Client) Show(ctx context.Context, name string) (Certificate, error) {
	if err := plain(name); err != nil {
		return Certificate{}, err
	}
	command := "show ssl cert " + name
	reply, err := c.ask(ctx, command+"\n")
	if err != nil {
		return Certificate{}, fmt.Errorf("look at %q in HAProxy: %w", name, err)
	}
	return parseCertificate(command, name, reply)
}

// timeForm is how OpenSSL prints a time.
const timeForm = "Jan _2 15:04:05 2006 MST"

// lineSize is how long a line of several commands may get; HAProxy's buffer holds twice as much.
const lineSize = bufferSize / 2

// ShowAll is [Client.Show] for many, asked together: a connection for each would cost more than the answers.
func (c *Client) ShowAll(ctx context.Context, names []string) (map[string]Certificate, error) {
	found := make(map[string]Certificate, len(names))
	for len(names) > 0 {
		var line strings.Builder
		n := 0
		for n < len(names) && (n == 0 || line.Len()+len(names[n]) < lineSize) {
			if err := plain(names[n]); err != nil {
				return nil, err
			}
			line.WriteString("show ssl cert " + names[n] + ";")
			n++
		}
		reply, err := c.ask(ctx, strings.TrimSuffix(line.String(), ";")+"\n")
		if err != nil {
			return nil, fmt.Errorf("look at %d certificates in HAProxy: %w", n, err)
		}
		const begin = "Filename: "
		for part := range strings.SplitSeq(reply, "\n"+begin) {
			part = begin + strings.TrimPrefix(part, begin)
			name, _, _ := strings.Cut(part[len(begin):], "\n")
			cert, err := parseCertificate("show ssl cert "+name, strings.TrimSpace(name), part)
			if err != nil {
				return nil, err
			}
			found[cert.Name] = cert
		}
		for _, name := range names[:n] {
			if _, ok := found[name]; !ok {
				return nil, &Refused{"show ssl cert " + name, reply[:min(len(reply), 200)]}
			}
		}
		names = names[n:]
	}
	return found, nil
}

func parseCertificate(command, name, reply string) (Certificate, error) {
	cert := Certificate{}
	for line := range strings.Lines(reply) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		switch key {
		case "Filename":
			cert.Name = value
		case "Status":
			cert.Status = value
		case "Serial":
			cert.Serial = value
		case "SHA1 FingerPrint":
			cert.SHA1 = value
		case "notBefore":
			cert.NotBefore, _ = time.Parse(timeForm, value)
		case "notAfter":
			cert.NotAfter, _ = time.Parse(timeForm, value)
		case "Subject Alternative Name":
			for san := range strings.SplitSeq(value, ", ") {
				if dns, ok := strings.CutPrefix(san, "DNS:"); ok {
					cert.SANs = append(cert.SANs, dns)
				}
			}
		}
	}
	if cert.Name != name {
		return Certificate{}, &Refused{command, reply}
	}
	return cert, nil
}

// Size is how many octets the command has that sets a certificate.
func Size(name string, pem []byte) int { return len(setCommand(name, pem)) }

func setCommand(name string, pem []byte) string {
	return "set ssl cert " + name + " <<\n" + string(pem) + "\n"
}

// Set opens a transaction in which the file holds a certificate, its chain and its key, in PEM with a line feed at its
// end and without blank lines. The errors are those of the package.
func (c *Client) Set(ctx context.Context, name string, pem []byte) error {
	if err := plain(name); err != nil {
		return err
	}
	if bytes.Contains(pem, []byte("\n\n")) || bytes.Contains(pem, []byte("\r")) || !bytes.HasSuffix(pem, []byte("\n")) {
		return errors.New("set a certificate in HAProxy: a blank line would end it early")
	}
	if Size(name, pem) >= bufferSize {
		return ErrTooLarge
	}
	reply, err := c.ask(ctx, setCommand(name, pem))
	if err != nil {
		return fmt.Errorf("set %q in HAProxy: %w", name, err)
	}
	text := strings.TrimSpace(reply)
	if text == "Transaction created for certificate "+name+"!" {
		return nil
	}
	if other, ok := strings.CutPrefix(text, "Transaction updated for certificate "); ok {
		return &Foreign{strings.TrimSuffix(other, "!")}
	}
	if strings.Contains(text, "not referenced by the configuration!") {
		return ErrUnknownName
	}
	return &Refused{"set ssl cert " + name, reply}
}

// Commit ends a transaction: from now on HAProxy serves what it holds.
func (c *Client) Commit(ctx context.Context, name string) error {
	if err := plain(name); err != nil {
		return err
	}
	reply, err := c.ask(ctx, "commit ssl cert "+name+"\n")
	if err != nil {
		return fmt.Errorf("commit %q in HAProxy: %w", name, err)
	}
	lines := strings.Split(strings.TrimSpace(reply), "\n")
	if strings.TrimSpace(lines[len(lines)-1]) == "Success!" {
		return nil
	}
	return &Refused{"commit ssl cert " + name, reply}
}

// Abort ends a transaction without effect. That there is none is no error.
func (c *Client) Abort(ctx context.Context, name string) error {
	if err := plain(name); err != nil {
		return err
	}
	reply, err := c.ask(ctx, "abort ssl cert "+name+"\n")
	if err != nil {
		return fmt.Errorf("abort %q in HAProxy: %w", name, err)
	}
	switch strings.TrimSpace(reply) {
	case "Transaction aborted for certificate '" + name + "'!", "No ongoing transaction!":
		return nil
	}
	return &Refused{"abort ssl cert " + name, reply}
}

// Process is who answers at the socket.
type Process struct {
	PID     int // as HAProxy itself sees it
	Version string
	Uptime  time.Duration
}

// Process asks for it.
func (c *Client) Process(ctx context.Context) (Process, error) {
	reply, err := c.ask(ctx, "show info\n")
	if err != nil {
		return Process{}, fmt.Errorf("ask HAProxy who it is: %w", err)
	}
	var p Process
	for line := range strings.Lines(reply) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Pid":
			p.PID, _ = strconv.Atoi(value)
		case "Version":
			p.Version = value
		case "Uptime_sec":
			seconds, _ := strconv.Atoi(value)
			p.Uptime = time.Duration(seconds) * time.Second
		}
	}
	if p.PID == 0 {
		return Process{}, &Refused{"show info", reply}
	}
	return p, nil
}
