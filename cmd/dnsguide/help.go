package main

// Help begins with what to type, and that of the program fits on a screen of 24 lines.
const (
	appHelp = `{{.UsageText}}

{{.Description}}

COMMANDS:{{template "visibleCommandCategoryTemplate" .}}

OPTIONS:{{template "visibleFlagTemplate" .}}

Exit status: 0 fine, 3 missing or wrong, 4 cannot tell, 10 usage or settings, 11 DNS provider.
More: dnsguide COMMAND --help, man dnsguide
`
	commandHelp = `{{.UsageText}}

{{.Description}}

OPTIONS:{{template "visibleFlagTemplate" .}}
`
)
