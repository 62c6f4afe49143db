package persist

import "github.com/certhook/certhook/pkg/dnsname"

// ParseIssuer is [dnsname.ParseIssuer]: an issuer domain name in the form in which records are written and compared.
func ParseIssuer(s string) (string, error) { return dnsname.ParseIssuer(s) }
