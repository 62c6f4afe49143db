#!/bin/sh
# Shows certhook at work on this terminal, with nothing configured: certificates issued and renewed by real
# certbot in a lab of its own. Needs root and Go; installs what else is missing on Debian. Arguments go to
# the program, tests/demo: the name of something to break, or help. Nothing outside the lab is touched.
set -eu

cd "$(dirname "$0")/.."
export HOME="${HOME:-/root}" PATH="$PATH:/usr/local/go/bin:/usr/sbin:/sbin"

if [ "${1:-}" != help ]; then
	if [ "$(id -u)" -ne 0 ]; then
		echo "demo: this needs root, for a network namespace in which other hosts' names are its own: sudo make demo" >&2
		exit 1
	fi
	scripts/setup.sh demo
fi

TMPDIR=$(mktemp -d)
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
# Root may build here what somebody else has checked out, where git refuses to tell the version.
export TMPDIR GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:-} -buildvcs=false"
echo "demo: building; a minute or two the first time" >&2
go build -o "$TMPDIR/demo" ./tests/demo # "go run" would hide the exit code
"$TMPDIR/demo" "$@"
