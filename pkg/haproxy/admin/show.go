package admin

import (
	"context"
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
	reply, err := c.question(ctx, "show ssl cert\n")
	if err != nil {
		return List{}, fmt.Errorf("list HAProxy's certificates: %w", err)
	}
	l, err := parseList(reply)
	if err != nil {
		return List{}, fmt.Errorf("list HAProxy's certificates: %w", err)
	}
	return l, nil
}

func parseList(reply string) (List, error) {
	var l List
	section := ""
	for line := range strings.Lines(reply) {
		line = strings.TrimSuffix(line, "\n")
		name, starred := strings.CutPrefix(line, "*")
		switch {
		case line == "": // all that comes where HAProxy has no certificates
		case line == "# transaction", line == "# filename":
			section = line
		case strings.HasPrefix(line, "# "):
			return List{}, refusal("show ssl cert", reply)
		case section == "# transaction" && starred && l.Transaction == "":
			l.Transaction = name
		case section == "# filename":
			l.Names = append(l.Names, line)
		default:
			return List{}, refusal("show ssl cert", reply)
		}
	}
	return l, nil
}

// Certificate is one certificate in memory. Where a description exceeds HAProxy's buffer, fields are missing: they are
// empty, or the zero time. A store that was made and never filled has a name and a status only.
type Certificate struct {
	Name                string
	Status              string // "Used", "Unused" or "Empty"
	Serial, SHA1        string // hexadecimal, upper case
	NotBefore, NotAfter time.Time
	SANs                []string // DNS names only
}

// Show asks for one certificate; "*" before the name stands for the open transaction. It is [ErrUnknownName] where
// there is none, and [ErrLocked] while certificates are changed.
//
// Of a certificate whose names take almost 16384 octets or more HAProxy 2.6 can crash: it should not be asked for.
func (c *Client) Show(ctx context.Context, name string) (Certificate, error) {
	found, err := c.ShowAll(ctx, []string{name})
	return found[name], err
}

const (
	showCommand = "show ssl cert "
	// lineSize is how long a line of several commands may get; HAProxy's buffer holds twice as much.
	lineSize = bufferSize / 2
)

// ShowAll is [Client.Show] for many, asked together: a connection for each would cost more than the answers.
func (c *Client) ShowAll(ctx context.Context, names []string) (map[string]Certificate, error) {
	for _, name := range names {
		if err := plain(name); err != nil {
			return nil, err
		}
	}
	found := make(map[string]Certificate, len(names))
	for len(names) > 0 {
		line, n := showCommand+names[0], 1
		for n < len(names) && len(line)+len(names[n]) < lineSize {
			line += ";" + showCommand + names[n]
			n++
		}
		reply, err := c.question(ctx, line+"\n")
		if err == nil {
			err = parseCertificates(found, names[:n], reply)
		}
		if err != nil && n == 1 {
			return nil, fmt.Errorf("look at %q in HAProxy: %w", names[0], err)
		} else if err != nil {
			return nil, fmt.Errorf("look at %d certificates in HAProxy: %w", n, err)
		}
		names = names[n:]
	}
	return found, nil
}

// parseCertificates reads descriptions, one after the other, of the certificates that were asked for. Where one is
// missing the error is what the reply has in its place.
func parseCertificates(found map[string]Certificate, names []string, reply string) error {
	descriptions := map[string]*Certificate{}
	cert := &Certificate{}
	for line := range strings.Lines(reply) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if key == "Filename" {
			cert = &Certificate{Name: value}
			descriptions[value] = cert
			continue
		}
		cert.read(key, value)
	}
	for _, name := range names {
		if descriptions[name] == nil {
			return refusal(showCommand+name, reply)
		}
		found[name] = *descriptions[name]
	}
	return nil
}

// timeForm is how OpenSSL prints a time.
const timeForm = "Jan _2 15:04:05 2006 MST"

// read takes in one line of a description. What cannot be read stays empty.
func (c *Certificate) read(key, value string) {
	switch key {
	case "Status":
		c.Status = value
	case "Serial":
		c.Serial = value
	case "SHA1 FingerPrint":
		c.SHA1 = value
	case "notBefore":
		c.NotBefore, _ = time.Parse(timeForm, value)
	case "notAfter":
		c.NotAfter, _ = time.Parse(timeForm, value)
	case "Subject Alternative Name":
		for san := range strings.SplitSeq(value, ", ") {
			if name, ok := strings.CutPrefix(san, "DNS:"); ok {
				c.SANs = append(c.SANs, name)
			}
		}
	}
}

// Process is who answers at the socket.
type Process struct {
	Name    string // "HAProxy", or what somebody who sells it calls it
	PID     int    // as HAProxy itself sees it
	Version string
	Uptime  time.Duration
}

// Process asks for it. A socket of any level answers.
func (c *Client) Process(ctx context.Context) (Process, error) {
	reply, err := c.question(ctx, "show info\n")
	if err != nil {
		return Process{}, fmt.Errorf("ask HAProxy who it is: %w", err)
	}
	p, err := parseProcess(reply)
	if err != nil {
		return Process{}, fmt.Errorf("ask HAProxy who it is: %w", err)
	}
	return p, nil
}

func parseProcess(reply string) (Process, error) {
	var p Process
	uptime := -1
	for line := range strings.Lines(reply) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "Name":
			p.Name = value
		case "Version":
			p.Version = value
		case "Pid":
			p.PID = number(value)
		case "Uptime_sec":
			uptime = number(value)
		}
	}
	if p.Name == "" || p.Version == "" || p.PID <= 0 || uptime < 0 {
		return Process{}, refusal("show info", reply)
	}
	p.Uptime = time.Duration(uptime) * time.Second
	return p, nil
}

// number is -1 for what is none. HAProxy counts in 32 bits.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}
