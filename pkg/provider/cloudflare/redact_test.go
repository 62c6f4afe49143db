package cloudflare

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`"\u0074\u006F\/ken"`:                  `"to/ken"`,
		`"\\u0074"`:                            `"\\u0074"`, // a backslash and u0074
		`"\\\u0074"`:                           `"\\t"`,     // a backslash and t
		`"\u0022\u005c\u000a\u00e9\u0100\n\""`: `"\u0022\u005c\u000a\u00e9\u0100\n\""`,
		`"\u00"`:                               `"\u00"`,
		`plain`:                                `plain`,
	} {
		got := unescape([]byte(in))
		if string(got) != want {
			t.Errorf("unescape(%s) = %s, want %s", in, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(in), &before) == nil && (json.Unmarshal(got, &after) != nil || !reflect.DeepEqual(before, after)) {
			t.Errorf("%s means something else than %s", got, in)
		}
	}
}

// A token with a quotation mark, which JSON has to escape, is found only after decoding.
func TestRedactAll(t *testing.T) {
	c := &client{token: `to"ken`}
	list := c.redactAll([]apiError{{Message: `a to"ken`, Chain: []apiError{{Message: `to"ken`, Chain: []apiError{{Message: `to"ken`}}}}}})
	if got, want := list[0].String(), "a [token] (code 0), [token] (code 0), [token] (code 0)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
