package queue_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
)

// Operations on a job as it was read are refused once it has changed.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for name, do := range map[string]func(context.Context, queue.Unchanged) error{
			"retry":  func(ctx context.Context, u queue.Unchanged) error { return u.Retry(ctx) },
			"cancel": func(ctx context.Context, u queue.Unchanged) error { return u.Cancel(ctx) },
			"move":   func(ctx context.Context, u queue.Unchanged) error { return u.Move(ctx, "others") },
			"delete": func(ctx context.Context, u queue.Unchanged) error { return u.Delete(ctx) },
		} {
			id := f.add(t, job(`1`))[0].ID
			stale, err := f.Get(t.Context(), f.tenant, id)
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			change := f.Cancel // to a state that allows retries and deletions
			if name == "cancel" || name == "move" {
				change = func(ctx context.Context, tenant, id string) (*api.Job, error) { return f.Hold(ctx, tenant, id, "") }
			}
			seen, err := change(t.Context(), f.tenant, id)
			if err != nil {
				t.Fatalf("change: %v", err)
			}
			if err := do(t.Context(), f.Unchanged(f.tenant, stale)); api.ErrorCode(err) != api.CodeJobState {
				t.Errorf("%s of a job that has changed: got %v, want %s", name, err, api.CodeJobState)
			}
			if err := do(t.Context(), f.Unchanged(f.tenant, seen)); err != nil {
				t.Errorf("%s: got %v, want none", name, err)
			}
		}
	})
}
