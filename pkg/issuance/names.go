package issuance

import (
	"slices"

	"github.com/certhook/certhook/pkg/caa"
	"github.com/certhook/certhook/pkg/certbot"
)

// Names lists the names that are renewed here at the CA, wildcards with their "*."; those of lineages that cannot be read
// are left out.
func (i *Issuer) Names() []string {
	var names []string
	lineages, _ := i.Lineages()
	for _, name := range lineages {
		if l, err := i.lineage(name); err == nil && l.Server == i.Server {
			names = append(names, l.Names...)
		}
	}
	return names
}

// shared lets a question about CAA records ask for both methods, in dnsguide's order, where certbot renews the domain or
// its wildcard with the same account by hooks: a record that names one method alone refuses the other's orders.
func (i *Issuer) shared(q caa.Question) caa.Question {
	if i.certbotRenews(q.Domain, q.Account) {
		q.Method, q.Methods = "dns-01", []string{Method}
	}
	return q
}

// certbotRenews reports whether certbot renews the domain or its wildcard by hooks, for that account at the CA.
func (i *Issuer) certbotRenews(domain, account string) bool {
	lineages, _ := certbot.Lineages(i.CertbotDir) // what cannot be read cannot be renewed either
	return slices.ContainsFunc(lineages, func(l certbot.Lineage) bool {
		named := slices.Contains(l.Names, domain) || slices.Contains(l.Names, "*."+domain)
		if !named || l.Authenticator != "manual" || !l.At(i.Server) {
			return false
		}
		a, err := certbot.AccountFor(i.CertbotDir, i.Server, l.Names)
		return err == nil && a.URI == account
	})
}
