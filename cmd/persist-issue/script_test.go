package main

import (
	"testing"

	"github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/tests/scripttest"
)

func TestMain(m *testing.M) {
	scripttest.Main(m, map[string]cli.Program{"persist-issue": run})
}

// What needs a CA or DNS is tried in tests/e2e.
func TestScripts(t *testing.T) { scripttest.Run(t, "testdata") }
