package main

import (
	"testing"

	"github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/tests/scripttest"
)

func TestMain(m *testing.M) {
	scripttest.Main(m, map[string]cli.Program{"dnsguide": run})
}

func TestScripts(t *testing.T) {
	scripttest.Run(t, "testdata")
}
