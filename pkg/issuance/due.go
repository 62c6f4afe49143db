package issuance

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// due says when the lineage's certificate is to be renewed: when the CA suggests (RFC 9773), or where it does not, with
// a third of the lifetime left, a half of one below ten days. leaf is nil where it has no certificate of use, and then
// is due at once.
func (i *Issuer) due(ctx context.Context, l *Lineage) (time.Time, *x509.Certificate) {
	leaf := i.leafOf(ctx, l)
	if leaf == nil {
		return time.Time{}, nil
	}
	if at, ok := i.suggested(ctx, l, leaf); ok {
		return at, leaf
	}
	return unsuggested(leaf.NotBefore, leaf.NotAfter), leaf
}

// unsuggested is when a certificate is to be renewed of which the CA says nothing.
func unsuggested(notBefore, notAfter time.Time) time.Time {
	const short = 10 * 24 * time.Hour
	life := notAfter.Sub(notBefore)
	if life < short {
		return notAfter.Add(-life / 2)
	}
	return notAfter.Add(-life / 3)
}

// renewalInfo is what a CA last said of when to renew a certificate, and when it may be asked again.
type renewalInfo struct {
	ID    string    `json:"id"` // of the certificate
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	Again time.Time `json:"again"`
}

// Bounds of how often a CA is asked (RFC 9773, section 4.3.1).
const (
	soonest = time.Minute
	rarest  = 24 * time.Hour
	usually = 6 * time.Hour
)

// suggested asks the CA, if it may be asked again, and picks a moment in the window that it suggests.
func (i *Issuer) suggested(ctx context.Context, l *Lineage, leaf *x509.Certificate) (time.Time, bool) {
	id, err := certID(leaf)
	if err != nil {
		return time.Time{}, false
	}
	if l.Renewal == nil || l.Renewal.ID != id || !time.Now().Before(l.Renewal.Again) {
		fresh, err := i.askRenewalInfo(ctx, id)
		switch {
		case errors.Is(err, errNoRenewalInfo):
			return time.Time{}, false
		case err != nil:
			i.Log.Info("the CA does not say when to renew", "lineage", l.Name, "error", err)
		default:
			l.Renewal = fresh
			if err := i.saveLineage(l); err != nil {
				i.Log.Warn("what the CA says of when to renew cannot be kept, and it will be asked again too soon", "lineage", l.Name, "error", err)
			}
		}
	}
	if l.Renewal == nil || l.Renewal.ID != id || !l.Renewal.Start.Before(leaf.NotAfter) {
		return time.Time{}, false
	}
	return l.Renewal.moment(), true
}

// moment is one in the window, any of them as likely, and the same each time that it is asked for.
func (r renewalInfo) moment() time.Time {
	sum := sha256.Sum256([]byte(r.ID))
	part := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
	return r.Start.Add(time.Duration(part * float64(r.End.Sub(r.Start))))
}

// certID is what ARI calls a certificate (RFC 9773, section 4.1).
func certID(leaf *x509.Certificate) (string, error) {
	if len(leaf.AuthorityKeyId) == 0 {
		return "", errors.New("the certificate has no authority key identifier")
	}
	der, err := asn1.Marshal(leaf.SerialNumber)
	if err != nil {
		return "", err
	}
	var value asn1.RawValue
	if _, err := asn1.Unmarshal(der, &value); err != nil {
		return "", err
	}
	enc := base64.RawURLEncoding
	return enc.EncodeToString(leaf.AuthorityKeyId) + "." + enc.EncodeToString(value.Bytes), nil
}

var errNoRenewalInfo = errors.New("the CA has no ARI")

// askRenewalInfo asks without an account: the answer is for everybody.
func (i *Issuer) askRenewalInfo(ctx context.Context, id string) (*renewalInfo, error) {
	c := i.dial(Account{})
	_, raw, err := c.directory(ctx)
	if err != nil {
		return nil, err
	}
	var dir struct {
		RenewalInfo string `json:"renewalInfo"`
	}
	if err := json.Unmarshal(raw, &dir); err != nil {
		return nil, err
	}
	if dir.RenewalInfo == "" {
		return nil, errNoRenewalInfo
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(dir.RenewalInfo, "/")+"/"+id, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.HTTPClient.Do(req)
	if err != nil {
		return nil, plain(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, err
	}
	return readRenewalInfo(id, body, retryAfter(resp.Header), time.Now())
}

// readRenewalInfo reads the answer (RFC 9773, section 4.2).
func readRenewalInfo(id string, body []byte, after time.Duration, now time.Time) (*renewalInfo, error) {
	var said struct {
		Window struct {
			Start time.Time `json:"start"`
			End   time.Time `json:"end"`
		} `json:"suggestedWindow"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	if said.Window.Start.IsZero() || !said.Window.Start.Before(said.Window.End) {
		return nil, errors.New("the window that it suggests does not end after it has begun")
	}
	if after == 0 {
		after = usually
	}
	return &renewalInfo{ID: id, Start: said.Window.Start, End: said.Window.End, Again: now.Add(min(max(after, soonest), rarest))}, nil
}
