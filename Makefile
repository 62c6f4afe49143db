# certhook. "make help" lists the targets. Go 1.26 or newer is the prerequisite; scripts/setup.sh installs
# the rest on Debian.

export PATH := $(PATH):/usr/local/go/bin:/usr/sbin:/sbin
# What go.mod asks for is checked by setup.sh; no other toolchain is fetched behind one's back.
export GOTOOLCHAIN := local

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man
DESTDIR ?=

GO      ?= go
TOOL    := $(GO) tool -modfile=scripts/tools/go.mod
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w$(if $(VERSION), -X github.com/certhook/certhook/pkg/cli.version=$(VERSION))
SCRIPTS := $(wildcard scripts/*.sh .ci/run hooks/*.sh)
# Packages whose tests bring up a lab in namespaces of their own, with real certbot.
E2E     := ./tests/lab/... ./tests/e2e/...
# A module of its own.
BOULDER := $(GO) -C tests/boulder

.DEFAULT_GOAL := build
.PHONY: build install check unit differential test bench e2e demo setup clean help

build: ## build every program into bin/, static and stripped
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

install: build ## install programs and man pages (DESTDIR, PREFIX=/usr/local, BINDIR, MANDIR)
	install -d '$(DESTDIR)$(BINDIR)'
	install -m 0755 bin/* '$(DESTDIR)$(BINDIR)'
	@for page in cmd/*/*.[18]; do \
		[ -e "$$page" ] || continue; \
		dir='$(DESTDIR)$(MANDIR)'/man$${page##*.}; \
		echo install -D -m 0644 "$$page" -t "$$dir"; \
		install -D -m 0644 "$$page" -t "$$dir" || exit; \
	done

check: setup ## formatting, vet, staticcheck, shell scripts, tidy go.mod
	@out=$$($(TOOL) gofumpt -l cmd pkg tests) && { [ -z "$$out" ] || { echo "gofumpt would change:"; echo "$$out"; exit 1; }; }
	$(GO) vet ./...
	$(BOULDER) vet ./...
	$(TOOL) staticcheck ./...
	$(BOULDER) tool -modfile=../../scripts/tools/go.mod staticcheck ./...
	$(TOOL) shfmt -d $(SCRIPTS)
	shellcheck $(SCRIPTS)
	$(GO) mod tidy -diff
	$(GO) -C scripts/tools mod tidy -diff
	$(BOULDER) mod tidy -diff

unit: setup ## unit tests, with the race detector, and the seeds of the fuzz targets
	$(GO) test -race $$($(GO) list ./... | grep -v '/tests/lab$$\|/tests/e2e')

e2e: setup ## end-to-end tests: certbot, a CA and DNS in a network namespace (as root)
	$(GO) test -count=1 -timeout 30m $(E2E)

differential: setup ## our reading of CAA and validation records against Boulder's own: N=20000 random questions, SEED= of a run to repeat
	BOULDER_N=$(N) BOULDER_SEED=$(SEED) $(BOULDER) test -vet=off -count=1 -timeout 3h -v ./...

# The comparison is for the processor and the end-to-end tests mostly wait, so that both go together.
test: check unit ## all of them
	@$(MAKE) --no-print-directory -j2 --output-sync=target differential e2e

bench: setup ## how long things take, side by side: 200 names, 1 of 1,000 and of 5,000 certificates in HAProxy
	$(GO) test -run '^$$' -bench . -benchtime 3x -timeout 1h ./pkg/guide ./pkg/haproxy

demo: ## the whole story on the terminal, with nothing configured (as root); FAULT=help lists what can be broken in it
	@scripts/demo.sh $(FAULT)

setup: # fetches all that is built; "go mod tidy" in check looks at a few modules more
	@scripts/setup.sh
	@$(GO) mod download
	@$(GO) mod download -modfile=scripts/tools/go.mod
	@$(BOULDER) mod download

clean: ## remove what was built
	rm -rf bin

help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
