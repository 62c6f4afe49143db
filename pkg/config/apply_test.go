package config

import "testing"

// No program but haproxy-apply stops over the keys of HAProxy.
func TestKeysOfHAProxy(t *testing.T) {
	wrong := map[string]string{
		"HAPROXY_CERT_DIR": "certs", "HAPROXY_CONFIG": "/a;b", "HAPROXY_STATS_SOCKET": "x", "HAPROXY_MASTER_SOCKET": "x",
		"HAPROXY_PIDFILE": "x", "HAPROXY_VERIFY": "a b", "HAPROXY_MAX_PAYLOAD": "1023",
	}
	var env, parts []string
	for key, value := range wrong {
		env = append(env, key+"="+value)
		parts = append(parts, "environment: "+key+": ")
	}
	if s := load(t, Options{Environ: env, Guide: true}); len(s.Warnings) > 0 || s.HAProxy.CertDir != "/etc/haproxy/certs" {
		t.Errorf("another program gets %q and warnings %q", s.HAProxy.CertDir, s.Warnings)
	}
	for _, opts := range []Options{{Apply: true}, {Strict: true}} {
		opts.Environ = env
		refuse(t, opts, parts...)
	}
}
