package certbot

import (
	"reflect"
	"strings"
	"testing"

	"github.com/certhook/certhook/pkg/fault"
)

const value = "-5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-k"

func TestHookChallenge(t *testing.T) {
	tests := []struct {
		name    string
		environ []string
		want    Challenge
		err     string // part of the error, or of its hint
	}{
		{
			name:    "first of two",
			environ: []string{"CERTBOT_DOMAIN=Example.com", "CERTBOT_VALIDATION=" + value, "CERTBOT_ALL_DOMAINS=example.com,example.com", "CERTBOT_REMAINING_CHALLENGES=1"},
			want:    Challenge{Domain: "example.com", Validation: value, Size: 2, Remaining: 1, Counted: true, Names: []string{"example.com", "example.com"}},
		},
		{
			name:    "certbot before 1.4",
			environ: []string{"CERTBOT_DOMAIN=svc.example.com", "CERTBOT_VALIDATION=" + value},
			want:    Challenge{Domain: "svc.example.com", Validation: value, Size: 1, Names: []string{"svc.example.com"}},
		},
		{
			name: "left over from an earlier lineage",
			environ: []string{
				"CERTBOT_AUTH_OUTPUT=old", "RENEWED_LINEAGE=/x", "RENEWED_DOMAINS=other.example",
				"CERTBOT_DOMAIN=svc.example.com", "CERTBOT_VALIDATION=" + value, "CERTBOT_ALL_DOMAINS=svc.example.com", "CERTBOT_REMAINING_CHALLENGES=0",
			},
			want: Challenge{Domain: "svc.example.com", Validation: value, Size: 1, Counted: true, Names: []string{"svc.example.com"}},
		},
		{
			name:    "IDN",
			environ: []string{"CERTBOT_DOMAIN=bücher.example", "CERTBOT_VALIDATION=" + value, "CERTBOT_ALL_DOMAINS=bücher.example", "CERTBOT_REMAINING_CHALLENGES=0"},
			want:    Challenge{Domain: "xn--bcher-kva.example", Validation: value, Size: 1, Counted: true, Names: []string{"xn--bcher-kva.example"}},
		},
		{name: "outside certbot", environ: []string{"PATH=/bin"}, err: "auth-hook rehearse"},
		{name: "http-01", environ: []string{"CERTBOT_DOMAIN=a.example", "CERTBOT_VALIDATION=tok.print", "CERTBOT_TOKEN=tok"}, err: "--preferred-challenges dns"},
		{name: "no domain", environ: []string{"CERTBOT_VALIDATION=" + value}, err: "CERTBOT_DOMAIN"},
		{name: "IP address", environ: []string{"CERTBOT_DOMAIN=192.0.2.1", "CERTBOT_VALIDATION=" + value}, err: "IP address"},
		{name: "not a name", environ: []string{"CERTBOT_DOMAIN=a b", "CERTBOT_VALIDATION=" + value}, err: "not a domain name"},
		{name: "short value", environ: []string{"CERTBOT_DOMAIN=a.example", "CERTBOT_VALIDATION=abc"}, err: "3 characters"},
		{name: "value in another alphabet", environ: []string{"CERTBOT_DOMAIN=a.example", "CERTBOT_VALIDATION=" + strings.Repeat("+", 43)}, err: "base64url"},
		{name: "remaining is no number", environ: []string{"CERTBOT_DOMAIN=a.example", "CERTBOT_VALIDATION=" + value, "CERTBOT_REMAINING_CHALLENGES=x"}, err: "CERTBOT_REMAINING_CHALLENGES"},
		{name: "remaining beyond the names", environ: []string{"CERTBOT_DOMAIN=a.example", "CERTBOT_VALIDATION=" + value, "CERTBOT_REMAINING_CHALLENGES=2", "CERTBOT_ALL_DOMAINS=a.example,b.example"}, err: "CERTBOT_REMAINING_CHALLENGES"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := HookChallenge(tt.environ)
			if tt.err == "" {
				if err != nil || !reflect.DeepEqual(got, tt.want) {
					t.Fatalf("got %+v, %v; want %+v", got, err, tt.want)
				}
				return
			}
			if err == nil {
				t.Fatalf("got %+v; want an error", got)
			}
			if text := err.Error() + fault.HintOf(err); !strings.Contains(text, tt.err) {
				t.Errorf("error and hint %q lack %q", text, tt.err)
			}
			if fault.KindOf(err) != fault.Usage {
				t.Errorf("kind %v, want Usage", fault.KindOf(err))
			}
		})
	}
}

func TestFirstAndLast(t *testing.T) {
	for _, tt := range []struct {
		size, remaining int
		first, last     bool
	}{{1, 0, true, true}, {3, 2, true, false}, {3, 1, false, false}, {3, 0, false, true}} {
		c := Challenge{Size: tt.size, Remaining: tt.remaining}
		if c.First() != tt.first || c.Last() != tt.last {
			t.Errorf("%d of %d: first %v, last %v", tt.remaining, tt.size, c.First(), c.Last())
		}
	}
}
