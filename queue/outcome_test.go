package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
)

// A job that ends without a record of its activation makes one that has ended: a repeated call
// never finds a queued activation whose job has ended.
func TestMissingRecordIsStoredAsEnded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		id := api.NewJobID()
		_, _, err := f.EnqueueInvocation(t.Context(), f.tenant, id, &api.JobSpec{
			Namespace: namespace, Queue: api.FunctionQueuePrefix + "echo", Payload: json.RawMessage(`1`),
			JobOptions: api.JobOptions{Target: &api.JobTarget{Function: "echo", Alias: "prod"}},
			Activation: &api.AsyncActivation{Access: api.AccessUnrestricted},
		})
		if err != nil {
			t.Fatalf("EnqueueInvocation: %v", err)
		}
		writes := new(recordWrites)
		f.store.Client().AddHook(writes)
		if _, err := f.Cancel(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		a, err := activations.New(f.store).Get(t.Context(), f.tenant, id)
		if err != nil || a.Status != api.StatusCancelled {
			t.Errorf("Get of the activation: got %+v and error %v, want status %s", a, err, api.StatusCancelled)
		}
		if queued, ended := writes.queued.Load(), writes.ended.Load(); queued != 0 || ended == 0 {
			t.Errorf("got %d writes of a queued record and %d of a cancelled one, want 0 and at least 1", queued, ended)
		}
	})
}

// recordWrites is a hook that counts pipelined commands with a record of an activation.
type recordWrites struct{ queued, ended atomic.Int64 }

func (*recordWrites) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*recordWrites) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (w *recordWrites) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			for _, arg := range cmd.Args() {
				switch text := fmt.Sprint(arg); {
				case strings.Contains(text, `"status":"queued"`):
					w.queued.Add(1)
				case strings.Contains(text, `"status":"cancelled"`):
					w.ended.Add(1)
				}
			}
		}
		return next(ctx, cmds)
	}
}
