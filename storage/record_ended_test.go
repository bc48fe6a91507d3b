package storage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// An activation that ends before its running record was written is stored whole: in
// its index, with its log and its result, as often as the call is repeated.
func TestRecordEnded(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		for name, result := range map[string]string{
			"small": `{"ok":true}`,
			"large": `"` + strings.Repeat("x", 2*api.MaxInlineResultBytes) + `"`,
			"cut":   `"` + strings.Repeat("y", api.MaxStoredResultBytes+1) + `"`,
		} {
			done := succeeded(f.running(), s.NowMS(), result)
			log := []byte(`{"ts_ms":1,"level":"info","message":"hello"}` + "\n")
			for range 2 {
				won, current, err := f.activations.RecordEnded(ctx, done, log)
				if err != nil || !won {
					t.Fatalf("%s: RecordEnded: got won %v, %v; want true, nil", name, won, err)
				}
				stored, err := f.activations.Get(ctx, done.Tenant, done.ActivationID)
				if err != nil {
					t.Fatalf("activations.Get: %v", err)
				}
				if diff := cmp.Diff(stored, current); diff != "" {
					t.Errorf("%s: returned record differs from the stored one (-want +got):\n%s", name, diff)
				}
				want, _ := activations.TruncateResult(json.RawMessage(result))
				if !bytes.Equal(stored.Result, want) {
					t.Errorf("%s: got a result of %d bytes, want %d", name, len(stored.Result), len(want))
				}
			}
			lines, _, err := activations.NewLogs(s).Read(ctx, done.Tenant, done.ActivationID, activations.LogCursor{}, 10)
			if err != nil || len(lines) != 1 {
				t.Errorf("%s: got log %v, %v; want one line", name, lines, err)
			}
			if ids := f.pages(t, activations.Filter{Limit: 500}); !slices.Contains(ids, done.ActivationID) {
				t.Errorf("%s: got list %v, want it to hold %s", name, ids, done.ActivationID)
			}
		}
	})
}

// The record is written from absent to terminal: one that exists stays.
func TestRecordEndedLeavesWhatExists(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		first := succeeded(f.running(), s.NowMS(), `"first"`)
		if won, _, err := f.activations.RecordEnded(ctx, first, nil); err != nil || !won {
			t.Fatalf("first RecordEnded: got %v, %v; want true, nil", won, err)
		}
		second := *first
		second.Result = json.RawMessage(`"second"`)
		won, current, err := f.activations.RecordEnded(ctx, &second, nil)
		if err != nil || won || string(current.Result) != `"first"` {
			t.Fatalf("second RecordEnded: got %v, %+v, %v; want false and the first record", won, current, err)
		}
		if won, current, err := f.activations.Finish(ctx, &second); err != nil || won || string(current.Result) != `"first"` {
			t.Fatalf("Finish behind RecordEnded: got %v, %+v, %v; want false and the first record", won, current, err)
		}
	})
}

// A pipeline of plain commands can end behind each of them, when the server or the
// connection dies. Wherever it does, no reader meets half an activation, and a
// repeat, by the same call or by Start and Finish, makes it whole.
func TestRecordEndedMayBeCut(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		cut := &cutPipeline{left: -1}
		s.Client().AddHook(cut)
		result := `"` + strings.Repeat("x", 2*api.MaxInlineResultBytes) + `"`
		log := []byte(`{"ts_ms":1,"level":"info","message":"hello"}` + "\n")
		for after := 0; ; after++ {
			running := f.running()
			running.Events = event.RecordEnds
			done := succeeded(running, s.NowMS(), result)
			cut.left = after
			_, _, err := f.activations.RecordEnded(ctx, done, log)
			whole := cut.left >= 0
			cut.left = -1
			if whole {
				if after < 5 || err != nil {
					t.Fatalf("got %d commands, %v; want an index entry, a log of three, a result and a record", after, err)
				}
				return
			}
			if api.ErrorCode(err) != api.CodeStoreUnavailable {
				t.Fatalf("cut after %d commands: got %v, want %s", after, err, api.CodeStoreUnavailable)
			}
			if a, err := f.activations.Get(ctx, done.Tenant, done.ActivationID); api.ErrorCode(err) != api.CodeActivationNotFound {
				t.Errorf("cut after %d commands: got %+v, %v; want %s", after, a, err, api.CodeActivationNotFound)
			}
			if after%2 == 0 {
				_, _, err = f.activations.RecordEnded(ctx, done, log)
			} else {
				_, _, err = f.activations.Start(ctx, running)
				if err == nil {
					_, _, err = f.activations.Finish(ctx, done)
				}
			}
			if err != nil {
				t.Fatalf("repeat behind %d commands: %v", after, err)
			}
			if a, err := f.activations.Get(ctx, done.Tenant, done.ActivationID); err != nil || string(a.Result) != result {
				t.Errorf("repeat behind %d commands: got %v, %v; want the whole result", after, a, err)
			}
		}
	})
}

// cutPipeline fails each pipeline behind its first left commands; a negative left
// lets all through. It belongs to one goroutine.
type cutPipeline struct{ left int }

var errCut = errors.New("cut")

func (c *cutPipeline) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *cutPipeline) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *cutPipeline) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if c.left < 0 || len(cmds) <= c.left {
			return next(ctx, cmds)
		}
		sent, lost := cmds[:c.left], cmds[c.left:]
		c.left = -1
		if len(sent) > 0 {
			if err := next(ctx, sent); err != nil {
				return err
			}
		}
		for _, cmd := range lost {
			cmd.SetErr(errCut)
		}
		return errCut
	}
}

// Activations of one function that are recorded at once share one index command.
func TestRecordsOfOneMomentShareTheirIndexCommand(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s, err := storage.Open(t.Context(), storage.Config{URL: server.URL})
	if err != nil {
		t.Fatalf("storage.Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f := newFixture(t, s)
	before := storagetest.Calls(t, s.Client())
	s.Client().AddHook(slowPipelines{})
	const n = 400
	errs := storagetest.Concurrently(n, func(int) error {
		_, _, err := f.activations.RecordEnded(t.Context(), succeeded(f.running(), s.NowMS(), `"hello"`), nil)
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("errors.Join: %v", err)
	}
	after := storagetest.Calls(t, s.Client())
	if got := after["set"] - before["set"]; got != n {
		t.Errorf("got %d SETs, want %d", got, n)
	}
	if got := after["zadd"] - before["zadd"]; got > n/2 {
		t.Errorf("got %d ZADDs for %d activations of one function at once, want at most %d", got, n, n/2)
	}
	if got := len(f.pages(t, activations.Filter{Limit: 500})); got != n {
		t.Errorf("got %d activations in the index, want %d", got, n)
	}
}

// slowPipelines makes each pipeline take as long as on a slow store, so that the calls
// of a test overlap on a loaded machine, too.
type slowPipelines struct{}

// DialHook implements redis.Hook.
func (slowPipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (slowPipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (slowPipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		time.Sleep(20 * time.Millisecond) // the store's time, not a wait for something
		return next(ctx, cmds)
	}
}
