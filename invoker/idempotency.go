package invoker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
)

// replay answers a repeated idempotent call from its record; both results are nil for a call that
// is not idempotent, or that has no record yet. The caller is authorized before, as only one that
// could have made the record sees it, and admitted by the rate of the tenant: a repeat counts as a
// call. Two first calls at the same moment both find nothing; recorder.claim then decides which of
// them runs.
func (i *Invoker) replay(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	if inv.IdempotencyKey == "" {
		return nil, nil //nolint:nilnil // documented: there is nothing to replay
	}
	rec, err := i.activations.Get(ctx, inv.Tenant, inv.DerivedID())
	if err != nil {
		if api.ErrorCode(err) == api.CodeActivationNotFound {
			return nil, nil //nolint:nilnil // documented: there is nothing to replay
		}
		return nil, err
	}
	return taken(rec, fingerprint(inv), nil)
}

// replayGone is replay for a function that cannot be resolved, which may be gone: without keys, its
// callers are answered all the same. The rate comes after the record, so that calls of functions
// that never were leave no state of their tenants.
func (i *Invoker) replayGone(ctx context.Context, inv *api.Invocation) (*api.Outcome, error) {
	if inv.Access != api.AccessUnrestricted {
		return nil, nil //nolint:nilnil // documented: there is nothing to replay
	}
	out, err := i.replay(ctx, inv)
	if out == nil || err != nil {
		return nil, err
	}
	if err := i.admit(ctx, inv.Tenant); err != nil {
		return nil, err
	}
	return out, nil
}

// replayed counts the answer to a repeated idempotent call; found reports that its
// function exists.
func (i *Invoker) replayed(inv *api.Invocation, found bool, out *api.Outcome, err error) (*api.Outcome, error) {
	if err != nil {
		return nil, i.metrics.refuse(inv, found, err)
	}
	i.metrics.replays.Inc()
	return out, nil
}

// taken answers a call whose activation id is in use. existing is nil if err is not.
// Errors: err, CodeIdempotencyMismatch for another request or another principal,
// CodeIdempotencyRunning while the first call runs.
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

// mismatch does not say in which part the requests differ: the other request may be another
// caller's.
func mismatch() error {
	return api.Errorf(api.CodeIdempotencyMismatch, "this idempotency key was used with another request")
}

// fingerprint returns the digest of the request and the caller of inv, which a repeat must
// equal: another caller that guesses the key must not see the result.
//
// The digest covers the principal's sub, a line feed, and inv.Fingerprint, or the event
// where that is empty. It is stored as event_sha256 of the record.
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
