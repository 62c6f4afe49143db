package challenge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/authority"
	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/delegation"
	"github.com/certhook/certhook/pkg/dnsname"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/journal"
	"github.com/certhook/certhook/pkg/propagation"
	"github.com/certhook/certhook/pkg/provider"
	"github.com/certhook/certhook/tests/dnstest"
)

const alias = "deleg.example.net"

// record is where the value of domain belongs.
func record(domain string) string { return "_acme-challenge." + domain + "." + alias }

// val is a well-formed validation that differs by n.
func val(n int) string { return fmt.Sprintf("%043d", n) }

// mistyped is an ID that no zone has.
const mistyped = "mistyped"

// memory is a provider that serves some zones of a dnstest world.
type memory struct {
	world *dnstest.World

	mu     sync.Mutex
	zones  []string
	fail   map[string]error // "zone", "add", "remove" or "add NAME"
	calls  []string
	before func(call string) // runs before each call
}

func (m *memory) note(call, name string) error {
	m.mu.Lock()
	before := m.before
	m.calls = append(m.calls, call+" "+name)
	err := m.fail[call+" "+name]
	if err == nil {
		err = m.fail[call]
	}
	m.mu.Unlock()
	if before != nil {
		before(call + " " + name)
	}
	return err
}

func (m *memory) Zone(_ context.Context, name string) (provider.Zone, error) {
	if err := m.note("zone", name); err != nil {
		return provider.Zone{}, err
	}
	if !slices.Contains(m.zones, name) {
		return provider.Zone{}, provider.ErrNoZone
	}
	return provider.Zone{Name: name, ID: "id-" + name}, nil
}

func (m *memory) Add(ctx context.Context, zone provider.Zone, rec provider.TXT) error {
	if err := m.note("add", rec.Name); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := m.world.AddTXT(zone.Name, rec.Name, rec.Value, uint32(rec.TTL.Seconds())); !errors.Is(err, dnstest.ErrExists) {
		return err
	}
	return nil
}

func (m *memory) Remove(ctx context.Context, zone provider.Zone, rec provider.TXT) (bool, error) {
	if err := m.note("remove", rec.Name); err != nil {
		return false, err
	}
	if zone.ID == mistyped {
		return false, provider.ErrZoneID
	}
	err := m.world.RemoveTXT(zone.Name, rec.Name, rec.Value)
	if errors.Is(err, dnstest.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (m *memory) called(call string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		if name, ok := strings.CutPrefix(c, call+" "); ok {
			names = append(names, name)
		}
	}
	return names
}

func (m *memory) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// lab is a world with the production zone example.com and the alias zone deleg.example.net, each with
// servers of its own, and hooks that hold credentials for the alias zone only.
type lab struct {
	*Hooks
	world    *dnstest.World
	provider *memory
	state    string
	log      *bytes.Buffer
	steps    []Step

	production *dnstest.Server   // serves example.com
	parent     *dnstest.Server   // serves example.net
	ns         []*dnstest.Server // serve the alias zone
}

func newLab(t *testing.T) *lab {
	t.Helper()
	w := dnstest.New(t)
	tld := w.AddServer("a.gtld.test")
	prod := w.AddServer("ns1.example.com")
	parent := w.AddServer("ns1.example.net")
	w.AddZone("", tld)
	w.AddZone("test", tld)
	w.AddZone("com", tld)
	w.AddZone("net", tld)
	w.AddZone("example.com", prod)
	w.AddZone("example.net", parent)
	w.AddZone("notdeleg.example.net", parent)
	l := &lab{world: w, state: filepath.Join(t.TempDir(), "state"), log: new(bytes.Buffer), production: prod, parent: parent}
	l.ns = []*dnstest.Server{w.AddServer("ns1." + alias), w.AddServer("ns2." + alias)}
	w.AddZone(alias, l.ns...)
	l.provider = &memory{world: w, zones: []string{alias}, fail: make(map[string]error)}
	for _, domain := range []string{"a.example.com", "b.example.com", "c.example.com", "example.com"} {
		l.delegate(domain)
	}
	store, err := journal.Open(l.state)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	l.Hooks = &Hooks{
		Targets:         delegation.Settings{Aliases: []string{alias}},
		TTL:             time.Minute,
		Provider:        l.provider,
		ProviderName:    "memory",
		ProviderTimeout: 10 * time.Second,
		DNS:             &authority.Client{Recursive: w, Port: w.Port},
		Propagation:     propagation.Options{Mode: propagation.Authoritative, Timeout: 10 * time.Second},
		Journal:         store,
		Log:             slog.New(slog.NewTextHandler(l.log, nil)),
		Observe: func(s Step) {
			mu.Lock()
			defer mu.Unlock()
			l.steps = append(l.steps, s)
		},
	}
	return l
}

// delegate adds the CNAME that the operator creates once.
func (l *lab) delegate(domain string) {
	l.world.Add("example.com", fmt.Sprintf("%s 300 CNAME %s", dnsname.Challenge(domain), record(domain)))
}

// caller is this test as the run of certbot.
func caller(t *testing.T) Caller {
	t.Helper()
	run, err := certbot.Processes{}.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return Caller{Run: run, Known: true, parent: os.Getppid()}
}

// process starts a process that stands for another certbot; end ends it.
func process(t *testing.T) (run certbot.Run, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() { stdin.Close(); cmd.Wait() })
	t.Cleanup(end)
	if run, err = (certbot.Processes{}).Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return run, end
}

// order makes the challenges of one order, numbered from first.
func order(first int, domains ...string) []certbot.Challenge {
	var calls []certbot.Challenge
	for i, d := range domains {
		calls = append(calls, certbot.Challenge{
			Domain: d, Validation: val(first + i), Size: len(domains), Remaining: len(domains) - 1 - i, Counted: true, Names: domains,
		})
	}
	return calls
}

func (l *lab) wantValues(t *testing.T, domain string, want ...string) {
	t.Helper()
	got := l.world.TXT(alias, record(domain))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has the values %q, want %q", record(domain), got, want)
	}
}

// wantKind fails unless err is of that kind and says each of the words.
func wantKind(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Fatalf("error %v of kind %v, want kind %v", err, fault.KindOf(err), kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

// live returns the records that the journal holds for possibly existing.
func (l *lab) live(t *testing.T) (names []string) {
	t.Helper()
	ids, err := l.Journal.IDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		f, err := l.Journal.Lock(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range f.Live() {
			names = append(names, e.Name)
		}
		f.Close()
	}
	return names
}
