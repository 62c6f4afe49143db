package rfc2136_test

import (
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/provider/rfc2136"
)

func TestSettings(t *testing.T) {
	const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	good := rfc2136.Config{Server: "ns1.example.net:53", KeyName: "certhook-key", KeySecret: secret}
	for name, tc := range map[string]struct {
		change func(*rfc2136.Config)
		ok     bool
	}{
		"as they are":          {func(*rfc2136.Config) {}, true},
		"IPv6":                 {func(c *rfc2136.Config) { c.Server = "[2001:db8::1]:5353" }, true},
		"no key":               {func(c *rfc2136.Config) { c.KeyName, c.KeySecret = "", "" }, true},
		"key as in BIND":       {func(c *rfc2136.Config) { c.KeyName, c.KeyAlgorithm = "Certhook-Key.", "HMAC-SHA512" }, true},
		"zone":                 {func(c *rfc2136.Config) { c.Zone = "deleg.example.net." }, true},
		"no server":            {func(c *rfc2136.Config) { c.Server = "" }, false},
		"no port":              {func(c *rfc2136.Config) { c.Server = "ns1.example.net" }, false},
		"no host":              {func(c *rfc2136.Config) { c.Server = ":53" }, false},
		"secret without name":  {func(c *rfc2136.Config) { c.KeyName = "" }, false},
		"name without secret":  {func(c *rfc2136.Config) { c.KeySecret = "" }, false},
		"secret not base64":    {func(c *rfc2136.Config) { c.KeySecret = secret + "!" }, false},
		"name not a name":      {func(c *rfc2136.Config) { c.KeyName = "a key" }, false},
		"algorithm of old":     {func(c *rfc2136.Config) { c.KeyAlgorithm = "hmac-md5" }, false},
		"zone that is no name": {func(c *rfc2136.Config) { c.Zone = "*.example.net" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			_, err := rfc2136.New(cfg)
			switch {
			case tc.ok && err != nil:
				t.Errorf("refused: %v", err)
			case !tc.ok && (fault.KindOf(err) != fault.Usage || fault.HintOf(err) == ""):
				t.Errorf("error %v with hint %q, want one of kind Usage", err, fault.HintOf(err))
			case err != nil && strings.Contains(err.Error()+fault.HintOf(err), secret[:12]):
				t.Errorf("the secret is in %v", err)
			}
		})
	}
}
