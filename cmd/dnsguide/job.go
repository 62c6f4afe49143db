package main

import (
	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	hookcli "github.com/certhook/certhook/pkg/cli"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/guide"
)

// job is what records and verify have in common.
type job struct {
	settings *config.Settings
	guide    *guide.Guide
	plans    []guide.Plan
}

// prepare reads flags and settings.
func prepare(c *cli.Context, environ []string) (*job, error) {
	if err := hookcli.NoArguments(c); err != nil {
		return nil, err
	}
	s, err := load(c, environ)
	if err != nil {
		return nil, err
	}
	dns, panel, err := setup.Resolution(s)
	if err != nil {
		return nil, err
	}
	list, err := plans(c.Context, c, s)
	if err != nil {
		return nil, err
	}
	setup.Warn(c, s)
	return &job{s, &guide.Guide{DNS: dns, Panel: panel, AllowMissingCAA: s.AllowMissingCAA, Interval: s.SetupInterval}, list}, nil
}
