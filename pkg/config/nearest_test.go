package config

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"PROPAGATION", "PROPAGATION_WAIT", "DNS_PROVIDER"}
	for name, want := range map[string]string{
		"PROPAGATOIN": "PROPAGATION", "PROPAGATION_WIAT": "PROPAGATION_WAIT", "PROPOGATION": "PROPAGATION",
		"DNSPROVIDER": "DNS_PROVIDER", "DNS_PROVIDERS": "DNS_PROVIDER", "PATH": "", "X": "", "": "",
	} {
		if got := nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"abc", ""}: 3, {"", "ab"}: 2, {"abc", "acb"}: 1, {"kitten", "sitting"}: 3} {
		if got := distance(pair[0], pair[1]); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", pair[0], pair[1], got, want)
		}
	}
}
