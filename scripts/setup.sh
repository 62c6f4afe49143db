#!/bin/sh
# Installs on Debian what the tests need and this machine lacks; elsewhere, or without root, it names what
# is missing and fails. "setup.sh demo" leaves out what only developers need. Go itself is the
# prerequisite. Where nothing is missing it is silent and changes nothing.
set -eu

go_minor=26 # Go 1.$go_minor or newer
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

check_go() {
	if ! command -v go >/dev/null; then
		echo "setup: Go 1.$go_minor or newer is needed and none is installed: get it from https://go.dev/dl/ (found on PATH and in /usr/local/go/bin)" >&2
		return 1
	fi
	# "go version go1.26.8 linux/amd64"; from outside the module, whose go.mod an old Go may refuse.
	version=$(cd / && GOTOOLCHAIN=local go version)
	minor=$(echo "$version" | sed -n 's/.*go1\.\([0-9][0-9]*\).*/\1/p')
	if [ "${minor:-0}" -lt "$go_minor" ]; then
		echo "setup: Go 1.$go_minor or newer is needed, $(command -v go) is \"$version\": get it from https://go.dev/dl/" >&2
		return 1
	fi
}

packages=
# need PACKAGE FILE-OR-COMMAND: wants the package unless there is a file or a command of that name.
need() {
	case $2 in
	/*) [ -e "$2" ] || packages="$packages $1" ;;
	*) command -v "$2" >/dev/null || packages="$packages $1" ;;
	esac
}

need ca-certificates /etc/ssl/certs/ca-certificates.crt
need certbot certbot
need git git
need haproxy haproxy
need make make
need unbound unbound
if [ "${1:-}" != demo ]; then
	need bind9 named
	need gcc gcc
	need libc6-dev /usr/include/stdlib.h
	need shellcheck shellcheck
fi

# install_packages installs without starting services: nothing of ours needs one, and unbound and named
# would take port 53.
install_packages() {
	policy=/usr/sbin/policy-rc.d
	if ! [ -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		trap 'exit 1' HUP INT TERM
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod 755 "$policy"
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq -o DPkg::Lock::Timeout=300 update ||
		echo "setup: the package lists could not be refreshed; trying those that are there" >&2
	# shellcheck disable=SC2086 # a list of words
	apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends -y $packages >/dev/null
	# Nor are they to start with the next boot of a machine that did not have them.
	case " $packages " in *" unbound "*) disable unbound.service unbound-resolvconf.service ;; esac
	case " $packages " in *" haproxy "*) disable haproxy.service ;; esac
	case " $packages " in *" bind9 "*) disable named.service named-resolvconf.service ;; esac
}

disable() {
	systemctl --quiet disable "$@" >/dev/null 2>&1 || :
}

check_go
[ -n "$packages" ] || exit 0
packages=${packages# }
if ! command -v apt-get >/dev/null; then
	echo "setup: missing, by the names of Debian's packages: $packages. Install them with this system's own tool" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "setup: missing: $packages. Type: sudo apt-get install --no-install-recommends $packages" >&2
	exit 1
fi
echo "setup: installing $packages" >&2
install_packages
