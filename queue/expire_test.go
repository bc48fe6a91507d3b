package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// expireCommands is more than the commands of any script of the queue in these tests.
const expireCommands = 24

// TestKeysMayExpireWithinScripts lets the keys with a time-to-live (idempotency and unique keys)
// expire before each command of the scripts, as the clock of KVRocks may. No call fails, and no
// key with a time-to-live loses it.
func TestKeysMayExpireWithinScripts(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	whole.Broker = brokerOn(t, whole.store, cutRetention)
	cfg.Clock = whole.clock.now
	for k := 1; k <= expireCommands; k++ {
		cfg.ScriptPrelude = storagetest.ExpireBefore(k)
		broken := brokerOn(t, storagetest.Open(t, cfg), cutRetention)
		for name, op := range cutOperations {
			f := *whole
			f.tenant, f.crashed = storagetest.Tenant(t), true
			t.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), k), func(t *testing.T) {
				expireOnce(t, op, &f, broken)
				f.empty(t)
			})
		}
	}
}

func expireOnce(t *testing.T, op cutOperation, f *fixture, broken *queue.Broker) {
	t.Helper()
	call, done := op(t, f)
	before := f.jobs(t)
	mortal := storagetest.ShortLived(t, f.store.Client(), "*")
	late := *f
	late.Broker = broken
	accepted, err := call(&late)
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	storagetest.Expire(t, f.store.Client(), mortal)
	for id := range before {
		accepted = append(accepted, id)
	}
	if done == nil { // the call deletes the jobs
		f.soundIndexes(t, func(string) bool { return true })
	} else {
		done(t, f, f.sound(t, accepted...))
	}
	f.leavesNothing(t)
}

// TestBatchesMayExpireWhileCounted counts a job in a completed batch while the batch expires. No
// part of the batch remains.
func TestBatchesMayExpireWhileCounted(t *testing.T) {
	t.Parallel()
	for _, backend := range storagetest.Backends() {
		t.Run(backend.Name, func(t *testing.T) {
			t.Parallel()
			cfg := backend.Config(t)
			f := newFixture(t, cfg)
			for k := 1; k <= expireCommands; k++ {
				f.tenant = storagetest.Tenant(t)
				batch := f.batch(t)
				f.add(t, job(`1`, inBatch(batch.ID)))
				f.ack(t, f.fetch(t, 1)[0], "")
				if _, err := f.SealBatch(t.Context(), f.tenant, namespace, batch.ID); err != nil {
					t.Fatalf("SealBatch: %v", err)
				}
				key := f.store.JobKeys(f.tenant).Batch(batch.ID)
				if parts := storagetest.ShortLived(t, f.store.Client(), key+":*"); len(parts) != 3 {
					t.Fatalf("got the keys %v with a time-to-live, want three", parts)
				}
				cfg.ScriptPrelude = storagetest.ExpireBefore(k)
				keys := []string{key + ":meta", key + ":jobs", key + ":succeeded", key + ":failed", f.store.JobKeys(f.tenant).Events()}
				_, err := storagetest.Open(t, cfg).Script(t.Context(), storage.ScriptBatchCount, keys, "seal", 1, "batch.sealed 1 batches b {}", 0, "another")
				if err != nil && api.ErrorCode(err) != api.CodeBatchNotFound {
					t.Errorf("expired before command %d: got error %v, want none or code %s", k, err, api.CodeBatchNotFound)
				}
				storagetest.Expire(t, f.store.Client(), storagetest.Keys(t, f.store.Client(), key+":*"))
			}
		})
	}
}
