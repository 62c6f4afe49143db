package issuance

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/certhook/certhook/pkg/fault"
)

const (
	ledgerVersion = 1
	ledgerFile    = "accounts.json"
)

// ledger is what is kept of our own accounts at one CA, in one file that is replaced as a whole. A key is in it before
// the CA hears of it, so that no account can be lost.
type ledger struct {
	Version int      `json:"version"`
	Server  string   `json:"server"`
	Current *entry   `json:"current,omitempty"` // in use, unless the settings say otherwise
	Next    *entry   `json:"next,omitempty"`    // that a rotation leads to
	Former  []entry  `json:"former,omitempty"`  // in use before, the latest last
	Leaving *leaving `json:"leaving,omitempty"` // of the last rotation, until it has been said what may be removed

	path string
}

// entry is an account.
type entry struct {
	Key  keyPEM    `json:"key,omitempty"` // none of a former account of certbot's
	URI  string    `json:"uri,omitempty"` // "" as long as the CA has not told it
	Made time.Time `json:"made"`          // the key, that is
}

// leaving is what a rotation has left behind.
type leaving struct {
	From  string   `json:"from"`
	Names []string `json:"names"`
}

// keyPEM is a private key in PKCS #8. It shows itself to nobody but its file.
type keyPEM string

func (keyPEM) String() string   { return "(key)" }
func (keyPEM) GoString() string { return "(key)" }

func (k keyPEM) parse() (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(k))
	if block == nil {
		return nil, errors.New("there is no key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("its key cannot sign")
	}
	return signer, nil
}

// newKey makes a P-256 key, which every CA takes.
func newKey() (crypto.Signer, keyPEM, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", err
	}
	return key, keyPEM(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// ledgerDir is where the ledger of the CA is, below the root.
func (i *Issuer) ledgerDir() []string {
	u, err := url.Parse(i.Server)
	if err != nil {
		u = &url.URL{Path: i.Server}
	}
	// Cleaned below a root of its own, so that no server leads out of the folder.
	clean := strings.Trim(filepath.Clean("/"+u.Host+"/"+u.EscapedPath()), "/")
	return append([]string{"accounts"}, strings.Split(clean, "/")...)
}

// ledger reads what is kept. An error means that nothing may be written in its place.
func (i *Issuer) ledger() (*ledger, error) {
	path := filepath.Join(append(append([]string{i.Root}, i.ledgerDir()...), ledgerFile)...)
	l := &ledger{Version: ledgerVersion, Server: i.Server, path: path}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, l)
	}
	if err == nil && l.Version != ledgerVersion {
		err = fmt.Errorf("its format is version %d, this program reads %d", l.Version, ledgerVersion)
	}
	if err != nil {
		return nil, fault.Errorf(fault.Usage, "read the ACME accounts in %q: %w", path, err).
			WithHint("the keys in it are all there is to the accounts: mend it, or restore it from a backup")
	}
	return l, nil
}

func (i *Issuer) save(l *ledger) error {
	if _, err := i.makeDir(i.ledgerDir()...); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return replace(l.path, append(raw, '\n'))
}
