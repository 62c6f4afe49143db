package main

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/tests/haproxytest"
	"github.com/certhook/certhook/tests/scripttest"
)

func TestMain(m *testing.M) {
	scripttest.Main(m, map[string]cli.Program{"haproxy-apply": run})
}

// The scripts run one HAProxy each, with a lineage a.test. Their own commands:
//
//	renew NAME [DAYS]    give a lineage a new certificate, that ends so many days from now
//	haproxy start|stop|freeze|thaw|break|mend|reload
//	serves NAME          fail unless HAProxy shows the lineage's certificate
func TestScripts(t *testing.T) {
	scripttest.RunInTurn(t, "testdata", map[string]scripttest.Command{"renew": renew, "haproxy": control, "serves": serves},
		func(t *testing.T, env *testscript.Env) {
			s := &scene{
				HAProxy: haproxytest.New(t, haproxytest.Options{}), lineages: haproxytest.NewLineages(t),
				ca: haproxytest.NewAuthority(t), current: map[string]haproxytest.Pair{},
			}
			first := s.ca.Issue(haproxytest.Wish{}, "default.test")
			if err := os.WriteFile(filepath.Join(s.CertDir, "000.pem"), append(first.Chain(), first.PrivateKey...), 0o600); err != nil {
				t.Fatal(err)
			}
			env.Values[sceneKey{}] = s
			for key, value := range map[string]string{
				"CERTBOT_CONFIG_DIR": s.lineages.Root, "HAPROXY_CERT_DIR": s.CertDir, "HAPROXY_CONFIG": s.Config, "HAPROXY_PIDFILE": s.PIDFile,
				"CERTHOOK_STATE_DIR": filepath.Join(env.WorkDir, "state"), "CERTHOOK_LOG": filepath.Join(env.WorkDir, "log"),
			} {
				env.Setenv(key, value)
			}
		})
}

type sceneKey struct{}

type scene struct {
	*haproxytest.HAProxy
	lineages *haproxytest.Lineages
	ca       *haproxytest.Authority
	current  map[string]haproxytest.Pair
}

func renew(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(sceneKey{}).(*scene)
	w := haproxytest.Wish{}
	if len(args) > 1 {
		days, err := strconv.Atoi(args[1])
		ts.Check(err)
		w.Left = time.Duration(days) * 24 * time.Hour
	}
	s.current[args[0]] = s.ca.Issue(w, args[0])
	s.lineages.Renew(args[0], s.current[args[0]])
}

func control(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(sceneKey{}).(*scene)
	switch args[0] {
	case "start":
		s.Start()
	case "stop":
		s.Stop()
	case "freeze": // it takes connections and says nothing
		for _, pid := range s.Workers() {
			ts.Check(syscall.Kill(pid, syscall.SIGSTOP))
		}
	case "thaw":
		for _, pid := range s.Workers() {
			ts.Check(syscall.Kill(pid, syscall.SIGCONT))
		}
	case "break":
		s.Break()
	case "mend":
		s.Mend()
	case "reload":
		s.Signal(syscall.SIGUSR2)
	default:
		ts.Fatalf("what is %q?", args[0])
	}
}

func serves(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(sceneKey{}).(*scene)
	if same := s.Served(args[0])[0].Equal(s.current[args[0]].Leaf); same == neg {
		ts.Fatalf("HAProxy serves the lineage's certificate: %v", same)
	}
}
