package invoker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
)

// replay answers a repeated idempotent call from its record; both results are
// nil where there is none yet. A record is shown to nobody that could not have
// made it: what Authorize says of inv comes first.
func (i *Invoker) replay(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	if inv.Access != api.AccessUnrestricted {
		if err := i.Authorize(ctx, inv); err != nil {
			return nil, err
		}
	}
	id := api.DerivedActivationID(inv.Tenant, inv.Namespace, inv.Function, inv.Ref, inv.IdempotencyKey)
	rec, err := i.activations.Get(ctx, inv.Tenant, id)
	if err != nil {
		if api.ErrorCode(err) == api.CodeActivationNotFound {
			return nil, nil //nolint:nilnil // documented: there is nothing to replay
		}
		return nil, err
	}
	return taken(rec, fingerprint(inv), nil)
}

// replayed counts what a repeated idempotent call is answered with; found says
// that its function is known to exist.
func (i *Invoker) replayed(inv *api.Invocation, found bool, out *api.Outcome, err error) (*api.Outcome, error) {
	if err != nil {
		return nil, i.metrics.refuse(inv, found, err)
	}
	i.metrics.replays.Inc()
	return out, nil
}

// taken answers a call whose activation id is in use.
func taken(existing *activations.Record, digest string, err error) (*api.Outcome, error) {
	switch {
	case err != nil:
		return nil, err
	case existing.EventSHA256 != digest:
		return nil, mismatch()
	case !existing.Status.Terminal():
		return nil, api.Errorf(api.CodeIdempotencyRunning, "the first call with this idempotency key is still running")
	}
	return &api.Outcome{Activation: existing.Activation, Replayed: true}, nil
}

func mismatch() error {
	return api.Errorf(api.CodeIdempotencyMismatch, "this idempotency key was used with another request")
}

// fingerprint is the digest of what a repeat of inv must equal: the same request
// of the same caller. What a function told one caller is not for the next one who
// guesses the key.
func fingerprint(inv *api.Invocation) string {
	whole := inv.Fingerprint
	if len(whole) == 0 {
		whole = inv.Event
	}
	sum := sha256.New()
	_, _ = sum.Write([]byte(inv.Principal.Sub + "\n")) // a hash takes every write
	_, _ = sum.Write(whole)
	return hex.EncodeToString(sum.Sum(nil))
}
