package main

import (
	"testing"

	"github.com/certhook/certhook/cmd/internal/man"
)

func TestManPage(t *testing.T) {
	man.Check(t, newApp(nil), 8, "auth-hook.8", man.HookKeys, `# FILES

**/etc/certhook/certhook.env**
: settings; mode 0600 when it holds a secret

**/var/lib/certhook/journal**
: the challenge records in flight

**/var/log/certhook/certhook.log**
: what was done, and why something failed

# SEE ALSO

**cleanup-hook**(8), **certbot**(1)
`)
}
