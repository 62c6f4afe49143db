// Package notify tells an operator's webhook which DNS records are wanted: a payload under an HMAC, and
// where the machine is an attested guest, with a quote that vouches for the payload. Whoever receives it is
// asked to change a zone, hence nothing leaves unsigned.
package notify

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// version is that of the payload's form.
const version = 1

// Message is what a webhook is told.
type Message struct {
	AppID, InstanceID string // of the attested guest; "" outside one
	Challenge         string // the ACME challenge that the records are for, such as "dns-01"
	Domain            string // canonical
	Records           []Record
	Time              time.Time // whole seconds of it are sent
}

// Record is one wanted DNS record. Its members are in the order in which the payload has them.
type Record struct {
	Exact bool   `json:"exact"` // nothing else does; false where another form of it would, such as addresses for a CNAME
	Name  string `json:"name"`
	Note  string `json:"note"` // for people
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Payload returns the message as the string that is signed: compact JSON in ASCII with sorted keys, octet by
// octet what Python's json.dumps(…, sort_keys=True, separators=(",", ":")) makes of the same values. An
// octet that is not UTF-8 becomes U+FFFD.
func (m Message) Payload() string {
	// The members stand in the order of their keys.
	payload := struct {
		AppID      string   `json:"app_id"`
		Challenge  string   `json:"challenge"`
		Domain     string   `json:"domain"`
		InstanceID string   `json:"instance_id"`
		Records    []Record `json:"records"`
		Timestamp  int64    `json:"timestamp"`
		Version    int      `json:"version"`
	}{m.AppID, m.Challenge, m.Domain, m.InstanceID, m.Records, m.Time.Unix(), version}
	if payload.Records == nil {
		payload.Records = []Record{} // [], not null
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(payload); err != nil {
		panic(err) // strings, integers and booleans can be encoded
	}
	return toASCII(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// toASCII escapes what is left of non-ASCII in JSON, and DEL. All of it stands in strings.
func toASCII(text []byte) string {
	var b bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f:
			b.WriteByte(text[0])
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
		text = text[size:]
	}
	return b.String()
}

// envelope is the body of the request.
type envelope struct {
	Payload     string          `json:"payload"`
	HMAC        string          `json:"hmac_sha256"`           // over the octets of Payload, in hex
	Attestation json.RawMessage `json:"attestation,omitempty"` // of an agent that answered
}

// sign returns the HMAC-SHA256 of payload in hex.
func sign(payload, token string) string {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(payload))
	return hex.EncodeToString(mac.Sum(nil))
}

// digest returns the SHA-256 of payload in hex: what a quote vouches for.
func digest(payload string) string {
	sum := sha256.Sum256([]byte(payload))
	return hex.EncodeToString(sum[:])
}
