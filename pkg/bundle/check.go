package bundle

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

// reissue is the hint where nothing but new files helps.
const reissue = "put the files back as they were issued, or issue the certificate anew: certbot renew --force-renewal --cert-name NAME"

// check holds the chain, key and time against each other.
func check(chain []*x509.Certificate, key crypto.PublicKey, now time.Time) error {
	leaf := chain[0]
	place := slices.IndexFunc(chain, func(c *x509.Certificate) bool { return samePublicKey(c.PublicKey, key) })
	switch {
	case place < 0:
		return fault.Errorf(fault.Lineage, "the key does not belong to the certificate of %q", subject(leaf)).
			WithHint("fullchain.pem and privkey.pem are of two certificates; %s", reissue)
	case place > 0:
		return fault.Errorf(fault.Lineage, "fullchain.pem begins with the certificate of %q, and that of %q, whose key it is, has to come first", subject(leaf), subject(chain[place])).
			WithHint("the order is: the certificate itself, its issuer's, that one's issuer's")
	case leaf.IsCA:
		return fault.Errorf(fault.Lineage, "the certificate of %q is a CA's, not a server's", subject(leaf)).
			WithHint("a certificate that signs itself is one unless it is made with basicConstraints=CA:FALSE")
	case len(leaf.DNSNames) == 0 && len(leaf.IPAddresses) == 0:
		return fault.Errorf(fault.Lineage, "the certificate of %q is for no name", subject(leaf)).
			WithHint("clients look at its subjectAltName alone")
	case !forServers(leaf):
		return fault.Errorf(fault.Lineage, "the certificate of %q is not for servers", subject(leaf)).
			WithHint("its extended key usage has to hold serverAuth")
	}
	if err := checkSignatures(chain); err != nil {
		return err
	}
	return checkDates(chain, now)
}

// forServers reports whether clients let a certificate pass that a server shows (RFC 5280, section 4.2.1.12).
func forServers(leaf *x509.Certificate) bool {
	return len(leaf.ExtKeyUsage)+len(leaf.UnknownExtKeyUsage) == 0 ||
		slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageAny)
}

func checkSignatures(chain []*x509.Certificate) error {
	for i, cert := range chain[:len(chain)-1] {
		if err := cert.CheckSignatureFrom(chain[i+1]); err != nil {
			return fault.Errorf(fault.Lineage, "certificate %d of fullchain.pem, that of %q, has not signed the one before it, that of %q: %w",
				i+2, subject(chain[i+1]), subject(cert), err).
				WithHint("what should follow is the certificate of %q", cert.Issuer.String())
		}
	}
	if len(chain) == 1 && !signsItself(chain[0]) {
		return fault.Errorf(fault.Lineage, "the chain is cut short: the certificate of the issuer, %q, is missing", chain[0].Issuer.String()).
			WithHint("fullchain.pem has to hold what is in cert.pem and what is in chain.pem; %s", reissue)
	}
	return nil
}

func signsItself(cert *x509.Certificate) bool {
	return cert.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature) == nil
}

func checkDates(chain []*x509.Certificate, now time.Time) error {
	for i, cert := range chain {
		switch {
		case i > 0 && bytes.Equal(cert.RawSubject, cert.RawIssuer): // a root
		case now.After(cert.NotAfter):
			return fault.Errorf(fault.Lineage, "the certificate of %q has expired, on %s", subject(cert), date(cert.NotAfter)).
				WithHint("renew it: certbot renew also tells why that has not happened yet")
		case now.Before(cert.NotBefore):
			return fault.Errorf(fault.Lineage, "the certificate of %q is not valid before %s", subject(cert), date(cert.NotBefore)).
				WithHint("is this machine's clock right? It says %s", date(now))
		}
	}
	return nil
}

func date(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// subject names a certificate: a leaf by its first name, since its subject may be empty.
func subject(cert *x509.Certificate) string {
	if len(cert.DNSNames) > 0 {
		return cert.DNSNames[0]
	}
	return cert.Subject.String()
}

func samePublicKey(a, b any) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}

// Covers is an error of kind Lineage where the leaf is not for all of the names. They are domain names in A-label
// form, in upper or lower case, or IP addresses. A wildcard in the certificate is for one label; one among the names
// has to be in the certificate as it is.
func (b *Bundle) Covers(names []string) error {
	var missing []string
	for _, name := range names {
		if b.Leaf().VerifyHostname(name) != nil { // it takes "*.a.test" literally
			missing = append(missing, fmt.Sprintf("%q", name))
		}
	}
	if len(missing) > 0 {
		return fault.Errorf(fault.Lineage, "the certificate of %q is not for %s", subject(b.Leaf()), strings.Join(missing, ", "))
	}
	return nil
}
