package haproxy

import (
	"slices"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/tests/haproxytest"
)

// tapped is a scene in which a.test is served and a tap stands before the stats socket.
func tapped(t *testing.T) (*scene, *haproxytest.Tap, func(*Applier)) {
	t.Helper()
	s := newScene(t, haproxytest.Options{})
	s.Start()
	s.renew("a.test", haproxytest.Wish{})
	s.renew("b.test", haproxytest.Wish{})
	if _, err := s.apply(); err != nil {
		t.Fatal(err)
	}
	tap := haproxytest.NewTap(t, s.HAProxy)
	return s, tap, func(a *Applier) { a.StatsSocket = tap.Path }
}

// Where nothing differs nothing is said to HAProxy but questions.
func TestNothingIsSet(t *testing.T) {
	t.Parallel()
	s, tap, through := tapped(t)
	if states, err := s.apply(through); err != nil || len(s.steps) > 0 {
		t.Errorf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	if changes := tap.Changes(); len(changes) > 0 {
		t.Errorf("commands %q", changes)
	}
	s.renew("a.test", haproxytest.Wish{})
	if states, err := s.apply(through); err != nil {
		t.Errorf("%s, %v", brief(states), err)
	}
	file := s.CertDir + "/a.test.pem"
	if got := tap.Changes(); !slices.Equal(got, []string{"set ssl cert " + file, "commit ssl cert " + file}) {
		t.Errorf("commands %q", got)
	}
}

// A HAProxy that misbehaves: no certificate is lost, no transaction of ours stays, the file is as it was, and the
// next run makes up for it.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	const a = "/a.test.pem"
	s, tap, through := tapped(t)
	file := s.CertDir + a
	tests := []struct {
		name    string
		command string
		fault   haproxytest.Fault
		kind    fault.Kind
		ok      bool // by trying again
	}{
		{name: "set says it has updated another", command: "set", fault: haproxytest.Fault{Reply: "Transaction updated for certificate " + s.CertDir + "/b.test.pem!\n\n"}, kind: fault.Pending},
		{name: "set says nothing", command: "set", fault: haproxytest.Fault{Close: true}, kind: fault.Pending},
		{name: "set says nothing once", command: "set", fault: haproxytest.Fault{Close: true, Times: 1}, ok: true},
		{name: "set is refused", command: "set", fault: haproxytest.Fault{Reply: "Can't update!\n"}, kind: fault.Refused},
		{name: "locked for ever", command: "commit", fault: haproxytest.Fault{Reply: "Operations on certificates are currently locked!\n"}, kind: fault.Pending},
		{name: "locked once", command: "commit", fault: haproxytest.Fault{Reply: "Operations on certificates are currently locked!\n", Times: 1}, ok: true},
		{name: "commit is refused", command: "commit", fault: haproxytest.Fault{Reply: "inconsistencies between private key and certificate loaded '" + file + "'.\nCan't commit " + file + "!\n"}, kind: fault.Refused},
		{name: "success without effect", command: "commit", fault: haproxytest.Fault{Reply: "Committing " + file + ".\nSuccess!\n"}, kind: fault.Pending},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := s.Served("a.test")[0]
			fresh := s.renew("a.test", haproxytest.Wish{})
			tap.Break(tt.command+" ssl cert", tt.fault)
			states, err := s.apply(through)
			tap.Mend()
			if tt.ok {
				if err != nil {
					t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
				}
				s.serves(fresh)
				return
			}
			kind(t, err, tt.kind)
			if got := s.Served("a.test")[0]; !got.Equal(before) {
				t.Errorf("HAProxy serves %X", got.SerialNumber)
			}
			if list := s.Command("show ssl cert"); strings.Contains(list, "# transaction") && tt.name != "success without effect" {
				t.Errorf("a transaction stays: %s", list)
			}
			if err := s.Check(); err != nil {
				t.Error(err)
			}
			if states, err := s.apply(through); err != nil {
				t.Errorf("next run: %s, %v, steps %q", brief(states), err, s.steps)
			}
			s.serves(fresh)
		})
	}
}

// A transaction that a killed run has left is ended; somebody else's is left alone.
func TestOpenTransaction(t *testing.T) {
	t.Parallel()
	s, _, _ := tapped(t)
	p := s.ca.Issue(haproxytest.Wish{}, "a.test")
	pem := strings.TrimSpace(string(append(p.Chain(), p.PrivateKey...)))
	s.Command("set ssl cert " + s.CertDir + "/a.test.pem <<\n" + pem + "\n")
	fresh := s.renew("b.test", haproxytest.Wish{})
	if states, err := s.apply(); err != nil {
		t.Fatalf("%s, %v, steps %q", brief(states), err, s.steps)
	}
	s.serves(fresh)
	if got := s.Served("a.test")[0]; got.Equal(p.Leaf) {
		t.Error("the transaction was committed")
	}

	s.Command("set ssl cert " + s.CertDir + "/000-default.pem <<\n" + pem + "\n")
	last := s.renew("b.test", haproxytest.Wish{})
	_, err := s.apply()
	kind(t, err, fault.Pending)
	s.serves(fresh)
	if list := s.Command("show ssl cert"); !strings.Contains(list, "*"+s.CertDir+"/000-default.pem") {
		t.Errorf("somebody else's transaction is gone: %s", list)
	}
	s.Command("abort ssl cert " + s.CertDir + "/000-default.pem")
	if states, err := s.apply(); err != nil {
		t.Errorf("%s, %v", brief(states), err)
	}
	s.serves(last)
}
