// Package haproxy gets the certificates that lineages on disk hold into a running HAProxy, and says that they
// are there only after a TLS handshake has shown them.
//
// It is level-triggered: what is wanted is what the lineages hold, what is so is what HAProxy's disk, memory and
// wire have, and every run removes the difference. Nothing else remembers that there is something left to do, so
// that nothing can be forgotten: whatever failed is tried again by the next run, until it sticks.
package haproxy

import (
	"log/slog"
	"time"

	"github.com/certhook/certhook/pkg/haproxy/wire"
)

// Applier brings a HAProxy up to date. Every field but those with a default named below is required.
type Applier struct {
	Roots   []string // folders whose live/ has lineages, in certbot's layout
	CertDir string   // where HAProxy's PEM files are; <lineage>.pem is ours
	Config  []string // HAProxy's configuration, for where the running process does not say which it read

	// What HAProxy's configuration and the running process do not say; "" leaves it to them.
	StatsSocket, MasterSocket, PIDFile string
	ReloadCommand                      string // shell line that reloads HAProxy where no socket and no signal can

	Probes     []wire.Target // where to look at the wire; nil: the TLS binds of the configuration
	ProbesOff  bool          // do not look, and warn that success then is hearsay
	VerifyAll  bool          // look at all certificates, not at those that changed and a sample
	MaxPayload int           // octets of a set command beyond which HAProxy is reloaded instead; 0 = 15360
	Group      string        // that may read the PEM files; "" for root alone

	StateDir string
	Then     string        // shell line that has to succeed after a change, too; "" for none
	Force    bool          // also put a certificate in the place of a younger one
	DryRun   bool          // say what would be done
	Timeout  time.Duration // for all of it
	Renewed  Renewed

	Log     *slog.Logger
	Observe func(step string) // told before each step that changes something; may be nil
	Now     func() time.Time  // nil = time.Now

	found  map[string]string // all lineages and their roots
	sample map[string]bool   // lineages whose wire is looked at although nothing has changed
}

// Renewed is what certbot says to a deploy hook: which lineage is new, and which names it is for.
type Renewed struct {
	Dir   string // RENEWED_LINEAGE; "" where certbot has not called
	Names []string
}

// DefaultMaxPayload is below HAProxy's tune.bufsize of 16384 octets, which is where the set command ends to
// work before HAProxy 3.4; at exactly that size 2.6 has been seen to crash.
const DefaultMaxPayload = 15360

// Action is what was done, or would be, for a lineage.
type Action string

const (
	None   Action = "none"
	Hot    Action = "hot update"
	Reload Action = "reload"
	Staged Action = "staged"
)

// State is one lineage and where it stands.
type State struct {
	Name        string    `json:"lineage"`
	Names       []string  `json:"names"`
	Serial      string    `json:"serial"`
	Fingerprint string    `json:"sha1"`
	NotAfter    time.Time `json:"not_after,omitzero"`
	File        string    `json:"file"`
	Disk        Place     `json:"disk"`
	Memory      []Held    `json:"memory"`
	Wire        []Seen    `json:"wire"`
	Served      bool      `json:"served"` // known by Status alone
	Action      Action    `json:"action"`
	Err         error     `json:"-"`
	Problem     string    `json:"problem,omitempty"`

	staged  *staged   // the new file beside the one that it is to replace
	desired *desired  // nil where the lineage is unusable
	asked   bool      // HAProxy has been asked for what it has in memory
	younger time.Time // notBefore of what is on disk or in memory, where that is younger than ours
}

// Place says whether a place has what the lineage has.
type Place string

const (
	Same   Place = "same"
	Other  Place = "other"
	Absent Place = "absent"
	Unseen Place = "unknown" // could not be looked at, or was not
	// Unasked is for a server that cannot be made to show this certificate, so that the handshake proves nothing.
	Unasked Place = "unasked"
)

// Held is one of the stores in HAProxy's memory that come from the lineage's file.
type Held struct {
	Name   string `json:"name"` // as the configuration names the file
	State  Place  `json:"state"`
	Used   bool   `json:"used"`
	Serial string `json:"serial,omitempty"`
}

// Seen is what a handshake showed.
type Seen struct {
	Bind   string `json:"bind"`
	Name   string `json:"name"` // in SNI
	State  Place  `json:"state"`
	Serial string `json:"serial,omitempty"`
	Detail string `json:"detail,omitempty"`

	sha1 string // of the leaf that was served
}
