package acmetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"testing"
)

func TestDirectory(t *testing.T) {
	s := New(t, Options{Resolver: "127.0.0.1:1"})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.TLSRoot)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(client.CloseIdleConnections)

	resp, err := client.Get(s.DirectoryURL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var dir struct {
		NewOrder string
		Meta     struct{ CAAIdentities []string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&dir); err != nil {
		t.Fatal(err)
	}
	if len(dir.Meta.CAAIdentities) != 1 || dir.Meta.CAAIdentities[0] != "letsencrypt.org" || dir.NewOrder == "" {
		t.Errorf("directory %+v", dir)
	}
	// Nonces are asked for where the directory says, at the name that the directory was asked by.
	if resp, err = client.Head(dir.NewOrder); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("HEAD %s: %v, %v", dir.NewOrder, resp, err)
	}
	if got := s.Requests(); len(got) != 2 || got[0].Path != directoryPath || len(s.Validations()) != 0 {
		t.Errorf("requests %+v", got)
	}
	if block := s.IssuingRoot; len(block) == 0 || s.Log() == "" {
		t.Errorf("issuing root %q, log %q", block, s.Log())
	}
}
