package certbot

import (
	"fmt"
	"net/url"
	"strings"
)

// Foreign tells in one phrase that an account belongs to another ACME server than the one given by its directory
// URL, and what to do about it. It is "" where nothing speaks against the account: RFC 8555 lets a server name its
// accounts as it likes, and those that are known name them at their own host.
func Foreign(account, server string) string {
	from, to := sameCA(host(account)), sameCA(host(server))
	if from == "" || to == "" || strings.EqualFold(from, to) {
		return ""
	}
	owner, way := from, "set ACME_SERVER to that server's directory"
	switch from {
	case productionHost, stagingHost:
		at := "https://" + from + "/directory"
		owner, way = ServerName(at), Choose(at)
	}
	return fmt.Sprintf("%s is an account of %s, and ACME_SERVER is %s: a CAA for it locks that one out; for certificates of %s %s, for the other name an account there (dnsguide account)",
		account, owner, ServerName(server), owner, way)
}

// sameCA returns the host that a server's accounts are named by today in place of one that they were named by
// before: Let's Encrypt lets either stand in a CAA record.
func sameCA(host string) string {
	switch host {
	case "acme-v01.api.letsencrypt.org":
		return productionHost
	case "acme-staging.api.letsencrypt.org":
		return stagingHost
	}
	return host
}

// Choose tells how to have the settings choose a server, given by its directory URL.
func Choose(server string) string {
	switch host(server) {
	case productionHost:
		return "take ACME_STAGING and ACME_SERVER out of the settings"
	case stagingHost:
		return "set ACME_STAGING=true"
	}
	return "set ACME_SERVER=" + server
}

// ServerName names a server as people do, or else by its directory URL.
func ServerName(server string) string {
	switch host(server) {
	case productionHost:
		return letsEncrypt + " production server"
	case stagingHost:
		return letsEncrypt + " staging server"
	}
	return server
}

const (
	productionHost = "acme-v02.api.letsencrypt.org"
	stagingHost    = "acme-staging-v02.api.letsencrypt.org"

	letsEncrypt = "Let's Encrypt's"
)

func host(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return u.Host
}

func at(name string) func(server string) bool {
	return func(server string) bool { return host(server) == name }
}
