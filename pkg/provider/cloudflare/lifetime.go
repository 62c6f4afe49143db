package cloudflare

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// active is the status of a token that works.
const active = "active"

// lifetime is what the API says of a token's validity. Times are zero where there is no limit.
type lifetime struct {
	Status    string    `json:"status"` // active, disabled, expired
	NotBefore time.Time `json:"not_before"`
	ExpiresOn time.Time `json:"expires_on"`
}

// ended means that the token is no good at the time.
type ended struct{ lifetime }

func (e *ended) Error() string {
	switch now := time.Now(); {
	case !e.ExpiresOn.IsZero() && !e.ExpiresOn.After(now):
		return fmt.Sprintf("the token is %s: it was good until %s", e.Status, e.ExpiresOn.UTC().Format(time.RFC3339))
	case e.NotBefore.After(now):
		return fmt.Sprintf("the token is %s: it is good from %s on", e.Status, e.NotBefore.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("the token is %s", e.Status)
}

// lifetime asks how long the token is good for. Of a token that belongs to an account instead of a user only
// that account's own address knows, so it takes seen, which may be nil, to find it.
func (c *client) lifetime(ctx context.Context, seen *listing) (lifetime, error) {
	life, err := c.verify(ctx, "/user/tokens/verify")
	if refusal(err) == nil || seen == nil || len(seen.accounts) != 1 {
		return life, err
	}
	for id := range seen.accounts {
		life, err = c.verify(ctx, "/accounts/"+id+"/tokens/verify")
	}
	return life, err
}

func (c *client) verify(ctx context.Context, path string) (lifetime, error) {
	asked := request{method: http.MethodGet, path: path}
	answer, err := c.do(ctx, asked)
	if err != nil {
		return lifetime{}, err
	}
	var life lifetime
	if err := json.Unmarshal(answer.Result, &life); err != nil {
		return lifetime{}, unusable(asked, fmt.Errorf("the answer does not tell a token's validity: %w", err))
	}
	if life.Status == "" {
		return lifetime{}, unusable(asked, fmt.Errorf("the answer has no status"))
	}
	return life, nil
}
