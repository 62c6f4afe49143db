package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPermissions(t *testing.T) {
	const secret, plain = "CLOUDFLARE_API_TOKEN=t\n", "CHALLENGE_TTL=60\nCLOUDFLARE_API_TOKEN=\n"
	for _, tc := range []struct {
		content string
		mode    os.FileMode
		refused string
	}{
		{secret, 0o600, ""},
		{secret, 0o400, ""},
		{secret, 0o640, "chmod 600"},
		{secret, 0o604, "chmod 600"},
		{secret, 0o620, "chmod 600"},
		{"DNS_WEBHOOK_TOKEN=t\n", 0o644, "chmod 600"}, // another program's secret
		{"CLOUDFLARE_API_TOKEN_FILE=/run/secrets/t\nCLOUDFLARE_API_TOKEN=t\n", 0o644, "chmod 600"},
		{plain, 0o644, ""},
		{plain, 0o664, ""},
		{plain, 0o646, "chmod o-w"},
	} {
		file := write(t, "c.env", tc.content, tc.mode)
		if tc.refused != "" {
			refuse(t, Options{File: file}, tc.refused+" "+file)
		} else {
			load(t, Options{File: file})
		}
	}
}

func TestFileThatOthersCanReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "c.env")
	link := filepath.Join(t.TempDir(), "link.env")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky, 0o775} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, link} {
			if mode == 0o777 {
				refuse(t, Options{File: path}, "chmod o-w "+dir)
			} else {
				load(t, Options{File: path})
			}
		}
	}
}

func TestSecretFiles(t *testing.T) {
	token := func(content string, mode os.FileMode) Options {
		return Options{Environ: []string{"CLOUDFLARE_API_TOKEN_FILE=" + write(t, "token", content, mode)}}
	}
	for _, content := range []string{"t0ken", "t0ken\n", "t0ken\r\n"} {
		s := load(t, token(content, 0o600))
		if got := s.CloudflareToken.Reveal(); got != "t0ken" || len(s.Warnings) > 0 {
			t.Errorf("%q: token %q, warnings %q", content, got, s.Warnings)
		}
	}
	if s := load(t, token("t0ken\n", 0o444)); s.CloudflareToken.Reveal() != "t0ken" || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "0444") {
		t.Errorf("a file that all can read: warnings %q", s.Warnings)
	}
	for _, content := range []string{"", "\n", "t0ken\n\n", "t0 ken", "t0ken\nother"} {
		text := refuse(t, token(content, 0o600), "environment: CLOUDFLARE_API_TOKEN")
		if strings.Contains(text, "t0") {
			t.Errorf("%q: the error shows the secret: %s", content, text)
		}
	}
	refuse(t, Options{Environ: []string{"CLOUDFLARE_API_TOKEN=t", "CLOUDFLARE_API_TOKEN_FILE=/x"}}, "CLOUDFLARE_API_TOKEN_FILE: CLOUDFLARE_API_TOKEN is set as well")
	refuse(t, Options{Environ: []string{"CLOUDFLARE_API_TOKEN_FILE=" + t.TempDir()}}, "not a regular file")
	refuse(t, token(strings.Repeat("x", maxSecret+1), 0o600), "larger")
}

func TestCredentialsDirectory(t *testing.T) {
	dir := t.TempDir()
	env := []string{"CREDENTIALS_DIRECTORY=" + dir}
	if s := load(t, Options{Environ: env}); s.DNSProvider != "" {
		t.Errorf("provider %q out of nothing", s.DNSProvider)
	}
	credential := filepath.Join(dir, "cloudflare_api_token")
	if err := os.WriteFile(credential, []byte("t0ken"), 0o444); err != nil {
		t.Fatal(err)
	}
	s := load(t, Options{Environ: env, NeedProvider: true})
	if s.CloudflareToken.Reveal() != "t0ken" || s.DNSProvider != Cloudflare || len(s.Warnings) > 0 {
		t.Errorf("token %q, provider %q, warnings %q", s.CloudflareToken.Reveal(), s.DNSProvider, s.Warnings)
	}
	if err := os.WriteFile(credential, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(credential, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse(t, Options{Environ: env, NeedProvider: true}, credential, "empty")
}
