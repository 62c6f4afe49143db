#!/bin/sh
# Shows certhook at work on this terminal, with nothing configured: certificates issued and renewed by real
# certbot in a lab of its own. Needs root and Go; installs what else is missing on Debian. Arguments go to
# the program, tests/demo. Nothing outside the lab is touched.
set -eu

cd "$(dirname "$0")/.."
export HOME="${HOME:-/root}" PATH="$PATH:/usr/local/go/bin:/usr/sbin:/sbin"

if [ "$(id -u)" -ne 0 ]; then
	echo "demo: this needs root, for a network namespace in which other hosts' names are its own: sudo make demo" >&2
	exit 1
fi
scripts/setup.sh demo

# An interrupted "go run" leaves its folder behind.
TMPDIR=$(mktemp -d)
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
# Root may build here what somebody else has checked out, where git refuses to tell the version.
export TMPDIR GOTOOLCHAIN=local GOFLAGS="${GOFLAGS:-} -buildvcs=false"
echo "demo: building; a minute or two the first time" >&2
go run ./tests/demo "$@"
