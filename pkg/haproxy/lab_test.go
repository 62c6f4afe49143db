package haproxy

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// stage is a HAProxy, lineages and a CA.
type scene struct {
	*haproxytest.HAProxy
	lineages *haproxytest.Lineages
	ca       *haproxytest.Authority
	t        testing.TB
	state    string
	log      bytes.Buffer
	steps    []string
}

// newScene makes a HAProxy that serves a certificate for default.test, and a.test by a lineage.
func newScene(t testing.TB, o haproxytest.Options) *scene {
	t.Helper()
	s := &scene{HAProxy: haproxytest.New(t, o), lineages: haproxytest.NewLineages(t), ca: haproxytest.NewAuthority(t), t: t, state: t.TempDir()}
	s.put("000-default.pem", s.ca.Issue(haproxytest.Wish{}, "default.test"))
	return s
}

// put puts a certificate into HAProxy's folder.
func (s *scene) put(file string, p haproxytest.Pair) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.CertDir, file), append(p.Chain(), p.PrivateKey...), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// applier makes one for the scene.
func (s *scene) applier() *Applier {
	return &Applier{
		Roots: []string{s.lineages.Root}, CertDir: s.CertDir, Config: []string{s.Config}, PIDFile: s.PIDFile,
		StateDir: s.state, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Observe: func(step string) { s.steps = append(s.steps, step) },
	}
}

// apply runs once and returns the states and what the program would say.
func (s *scene) apply(change ...func(*Applier)) ([]State, error) {
	s.t.Helper()
	a := s.applier()
	for _, f := range change {
		f(a)
	}
	s.steps = nil
	states, err := a.Apply(s.t.Context())
	if problem := Err(states); problem != nil {
		err = problem
	}
	return states, err
}

// renew gives a lineage a new certificate and returns it.
func (s *scene) renew(name string, w haproxytest.Wish, names ...string) haproxytest.Pair {
	s.t.Helper()
	if len(names) == 0 {
		names = []string{name}
	}
	p := s.ca.Issue(w, names...)
	s.lineages.Renew(name, p)
	return p
}

// serves fails the test unless HAProxy shows a certificate for its first name.
func (s *scene) serves(p haproxytest.Pair) {
	s.t.Helper()
	if got := s.Served(p.Leaf.DNSNames[0])[0]; !got.Equal(p.Leaf) {
		s.t.Errorf("%s: HAProxy serves serial %X for %q, want %X", p.Leaf.DNSNames[0], got.SerialNumber, got.DNSNames, p.Leaf.SerialNumber)
	}
}

// kind fails the test unless err is of that kind.
func kind(t testing.TB, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("error %v of kind %v, want kind %v", err, fault.KindOf(err), want)
	}
}

// brief tells states in a line.
func brief(states []State) string {
	var b strings.Builder
	for _, s := range states {
		fmt.Fprintf(&b, "[%s: %s, disk %s, memory %s, wire %s of %d, error %v]", s.Name, s.Action, s.Disk, s.memory(), s.wire(), len(s.Wire), s.Err)
	}
	return b.String()
}
