package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/certhook/certhook/cmd/internal/setup"
	"github.com/certhook/certhook/pkg/config"
	"github.com/certhook/certhook/pkg/fault"
	"github.com/certhook/certhook/pkg/guide"
)

// job is what records and verify have in common.
type job struct {
	settings *config.Settings
	guide    *guide.Guide
	plans    []guide.Plan
	unread   error // says that names may be missing among those, see [names]
}

// prepare reads flags and settings.
func prepare(c *cli.Context, environ []string) (*job, error) {
	if c.Args().Present() {
		return nil, fault.Errorf(fault.Usage, "unexpected argument %q", c.Args().First()).
			WithHint("names go after -d: dnsguide %s -d %s", c.Command.Name, c.Args().First())
	}
	s, err := load(c, environ)
	if err != nil {
		return nil, err
	}
	dns, panel, err := setup.Resolution(s)
	if err != nil {
		return nil, err
	}
	list, unread, err := plans(c.Context, c, s)
	if err != nil {
		return nil, err
	}
	setup.Warn(c, s)
	setup.WarnPanel(c, panel)
	j := &job{s, &guide.Guide{DNS: dns, Panel: panel, AllowMissingCAA: s.AllowMissingCAA, Interval: s.SetupInterval}, list, unread}
	for _, doubt := range j.doubts() {
		fmt.Fprintf(c.App.ErrWriter, "%s: warning: %s\n", c.App.Name, doubt)
	}
	return j, nil
}

// doubts tells what speaks against the accounts that CAA records are to name, each thing once.
func (j *job) doubts() []string {
	var list []string
	for _, p := range j.plans {
		if doubt := p.CAA.Doubt; doubt != "" && p.Include[guide.CAA] && !slices.Contains(list, doubt) {
			list = append(list, doubt)
		}
	}
	return list
}
