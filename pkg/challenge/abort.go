package challenge

import (
	"context"

	"github.com/certhook/certhook/pkg/certbot"
	"github.com/certhook/certhook/pkg/journal"
)

// Aborted is the failure of an order that certbot is to give up at once instead of spending one of the
// CA's failed validations on it. Certbot ignores a hook's exit code, and a signal would stop the other
// lineages of a renew as well; but output that is not UTF-8 fails exactly the lineage at hand (seen with
// certbot 2.1 to 5.7-dev). So whoever runs the hook ends its stdout with [AbortByte].
type Aborted struct{ Err error }

func (a *Aborted) Error() string { return a.Err.Error() }

func (a *Aborted) Unwrap() error { return a.Err }

// AbortByte cannot occur in UTF-8.
const AbortByte = 0xFF

// abort gives the order up where the settings ask for it: it removes every value of the order, since
// certbot will call no cleanup, and returns err as *Aborted. Without that setting err comes back as it is.
// f is nil where the journal could not be had.
func (h *Hooks) abort(ctx context.Context, f *journal.File, err error) error {
	if !h.AbortOnFailure {
		return err
	}
	if f != nil {
		ctx, cancel := h.withProviderTime(ctx)
		defer cancel()
		if _, endErr := h.end(ctx, f); endErr != nil {
			h.Log.Warn("the order is aborted, and records of it are left, to be removed later", "error", endErr)
		}
	}
	h.Log.Info("the order is aborted", "error", err)
	return &Aborted{err}
}

// abortLast aborts when c is the order's last call. Before that certbot would go on to the next name and
// ask it for the rest.
func (h *Hooks) abortLast(ctx context.Context, c certbot.Challenge, f *journal.File, err error) error {
	if !c.Last() {
		return err
	}
	return h.abort(ctx, f, err)
}

// refusedBefore reports whether an earlier call of the order failed.
func refusedBefore(f *journal.File) bool {
	for _, e := range f.Current() {
		if e.State == journal.Refused {
			return true
		}
	}
	return false
}
