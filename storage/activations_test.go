package storage_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// running is the record of an activation that begins now.
func (f *fixture) running() *activations.Record {
	now := f.NowMS()
	return &activations.Record{Activation: api.Activation{
		ActivationID: uuid.NewString(), Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Function: f.fn.Name,
		Ref: api.Ref{Alias: "prod", Version: 1}, Trigger: api.Trigger{Type: api.TriggerHTTP},
		Status: api.StatusRunning, StartMS: now, DeadlineMS: now + 3000, Attempt: 1, RequestID: api.NewRequestID(now),
	}}
}

func succeeded(a *activations.Record, nowMS int64, result string) *activations.Record {
	b := *a
	b.Status, b.EndMS, b.DurationMS, b.Result = api.StatusSuccess, nowMS, nowMS-a.StartMS, json.RawMessage(result)
	return &b
}

func TestActivationLifecycle(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		a := f.running()
		for range 2 {
			if created, _, err := f.activations.Start(ctx, a); err != nil || !created {
				t.Fatalf("Start: got created %v and error %v, want true", created, err)
			}
		}
		done := succeeded(a, s.NowMS(), `{"ok":true}`)
		for range 2 {
			won, _, err := f.activations.Finish(ctx, done)
			if err != nil || !won {
				t.Fatalf("Finish: got won %v and error %v, want true", won, err)
			}
		}
		got, err := f.activations.Get(ctx, a.Tenant, a.ActivationID)
		if err != nil || string(got.Result) != `{"ok":true}` || got.Status != api.StatusSuccess {
			t.Fatalf("Get: got %+v and error %v, want status %s and result %s", got, err, api.StatusSuccess, `{"ok":true}`)
		}
		if _, err := f.activations.Cancel(ctx, a.Tenant, a.ActivationID, s.NowMS()); api.ErrorCode(err) != api.CodeActivationTerminal {
			t.Errorf("cancel: %v; want CodeActivationTerminal", err)
		}
	})
}

// lost is the record of an activation whose process must have died.
func (f *fixture) lost() *activations.Record {
	a := f.running()
	a.StartMS -= 60_000
	a.DeadlineMS = a.StartMS + 3000
	return a
}

func (f *fixture) start(t *testing.T, activations ...*activations.Record) {
	t.Helper()
	for _, a := range activations {
		if created, _, err := f.activations.Start(t.Context(), a); err != nil || !created {
			t.Fatalf("Start: got created %v and error %v, want true", created, err)
		}
	}
}

func TestStartOfATakenIDGivesWhatIsThere(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.running()
		a.EventSHA256 = "aa"
		f.start(t, a)
		b := *a
		b.EventSHA256, b.StartMS = "bb", a.StartMS+5
		created, existing, err := f.activations.Start(t.Context(), &b)
		if err != nil || created {
			t.Fatalf("Start of an id that is taken: got created %v and error %v, want false", created, err)
		}
		if d := cmp.Diff(a, existing); d != "" {
			t.Errorf("record differs (-want +got):\n%s", d)
		}
		if got := f.pages(t, activations.Filter{Limit: 10, ToMS: a.StartMS + 1}); len(got) != 1 {
			t.Errorf("List by the first start: got %v, want 1 activation: a repeated start leaves its index entry", got)
		}
	})
}

// A start can be withdrawn by the replica that made it, and only while nothing has changed it.
func TestWithdraw(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.running()
		a.Claim = "mine"
		f.start(t, a)
		b := *a
		b.Claim = "another's"
		if created, existing, err := f.activations.Start(t.Context(), &b); err != nil || created || existing.Claim != "mine" {
			t.Fatalf("Start of a derived id that another caller has started: got created %v, record %+v and error %v, want false and the claim %q", created, existing, err, "mine")
		}
		for range 2 {
			if err := f.activations.Withdraw(t.Context(), &b); err != nil {
				t.Fatalf("activations.Withdraw: %v", err)
			}
			if _, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID); err != nil {
				t.Fatalf("another's record went: %v", err)
			}
		}
		for range 2 { // the second finds nothing
			if err := f.activations.Withdraw(t.Context(), a); err != nil {
				t.Fatalf("activations.Withdraw: %v", err)
			}
		}
		if _, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID); api.ErrorCode(err) != api.CodeActivationNotFound {
			t.Errorf("after the withdrawal: %v; want CodeActivationNotFound", err)
		}
		f.start(t, a)
		done := succeeded(a, f.NowMS(), "1")
		if won, _, err := f.activations.Finish(t.Context(), done); err != nil || !won {
			t.Fatalf("Finish: got won %v and error %v, want true", won, err)
		}
		if err := f.activations.Withdraw(t.Context(), a); err != nil {
			t.Fatalf("activations.Withdraw: %v", err)
		}
		if got, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID); err != nil || got.Status != api.StatusSuccess {
			t.Errorf("Get of a record that had ended: got %+v and error %v, want status %s", got, err, api.StatusSuccess)
		}
	})
}

func TestResultsAreStoredBySize(t *testing.T) {
	t.Parallel()
	quoted := func(n int) string { return `"` + strings.Repeat("é", (n-2)/2) + `"` }
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		for name, result := range map[string]string{
			"undefined": "", "null": "null", "inline": quoted(api.MaxInlineResultBytes), "own key": quoted(api.MaxInlineResultBytes + 2),
			"largest": quoted(api.MaxStoredResultBytes), "cut": quoted(api.MaxStoredResultBytes + 1000),
			"deeply nested": strings.Repeat("[", 1500) + strings.Repeat("]", 1500),
		} {
			a := f.running()
			f.start(t, a)
			done := succeeded(a, s.NowMS(), result)
			for range 2 { // the second time recognises the first
				won, stored, err := f.activations.Finish(t.Context(), done)
				if err != nil || !won {
					t.Fatalf("%s: Finish: got won %v and error %v, want true", name, won, err)
				}
				if stored.ResultTruncated != (name == "cut") {
					t.Errorf("%s: got result_truncated %v, want %v", name, stored.ResultTruncated, name == "cut")
				}
			}
			// A loser gets the winner's record whole, and leaves its result alone.
			late := succeeded(a, s.NowMS()+1, quoted(api.MaxInlineResultBytes+4))
			won, current, err := f.activations.Finish(t.Context(), late)
			if err != nil || won {
				t.Fatalf("%s: late Finish: got won %v and error %v, want false", name, won, err)
			}
			got, err := f.activations.Get(t.Context(), a.Tenant, a.ActivationID)
			if err != nil {
				t.Fatalf("%s: activations.Get: %v", name, err)
			}
			want, _ := activations.TruncateResult(json.RawMessage(result))
			if !bytes.Equal(got.Result, want) || !bytes.Equal(current.Result, want) {
				t.Errorf("%s: got %d bytes, the loser saw %d, want %d", name, len(got.Result), len(current.Result), len(want))
			}
		}
	})
}

func TestCutResult(t *testing.T) {
	t.Parallel()
	whole := `"` + strings.Repeat("a", api.MaxStoredResultBytes-2) + `"`
	tests := map[string]struct {
		result    string
		truncated bool
		prefix    int // bytes of the result that the stored string holds
	}{
		"at the limit":                  {whole, false, 0},
		"one over":                      {whole + " ", true, api.MaxStoredResultBytes},
		"a character across the limit":  {`"` + strings.Repeat("a", api.MaxStoredResultBytes-3) + `é €"`, true, api.MaxStoredResultBytes},
		"a character over the limit":    {`"` + strings.Repeat("a", api.MaxStoredResultBytes-2) + `é"`, true, api.MaxStoredResultBytes - 1},
		"four bytes across the limit":   {`"` + strings.Repeat("a", api.MaxStoredResultBytes-4) + `😀"`, true, api.MaxStoredResultBytes - 3},
		"what has to be escaped itself": {`["` + strings.Repeat(`\"<`, api.MaxStoredResultBytes/3) + `"]`, true, api.MaxStoredResultBytes},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored, truncated := activations.TruncateResult(json.RawMessage(tt.result))
			if truncated != tt.truncated {
				t.Fatalf("TruncateResult: got truncated %v, want %v", truncated, tt.truncated)
			}
			if !truncated {
				if string(stored) != tt.result {
					t.Error("changed")
				}
				return
			}
			var text string
			if err := json.Unmarshal(stored, &text); err != nil {
				t.Fatalf("json.Unmarshal: %v", err)
			}
			if text != tt.result[:tt.prefix] || !utf8.ValidString(text) {
				t.Errorf("holds %d bytes, want %d", len(text), tt.prefix)
			}
		})
	}
}

func TestLostActivationsAreRepairedByReaders(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		a, b, alive, job := f.lost(), f.lost(), f.running(), f.lost()
		job.JobID = "job"
		grace := f.running() // past its deadline, within the grace
		grace.DeadlineMS = grace.StartMS - api.LostGraceMS/2
		f.start(t, a, b, alive, job, grace)
		got, err := f.activations.Get(ctx, a.Tenant, a.ActivationID)
		if err != nil || got.Status != api.StatusError || got.Error.Type != api.ErrLost || got.EndMS == 0 {
			t.Fatalf("Get of a lost activation: got %+v and error %v, want status %s, error type %s and an end", got, err, api.StatusError, api.ErrLost)
		}
		items, _, err := f.activations.List(ctx, activations.Filter{Tenant: a.Tenant, Namespace: a.Namespace, Function: a.Function})
		if err != nil {
			t.Fatalf("activations.List: %v", err)
		}
		statuses := map[string]api.Status{}
		for _, item := range items {
			statuses[item.ActivationID] = item.Status
		}
		want := map[string]api.Status{
			a.ActivationID: api.StatusError, b.ActivationID: api.StatusError,
			alive.ActivationID: api.StatusRunning, job.ActivationID: api.StatusRunning, grace.ActivationID: api.StatusRunning,
		}
		if d := cmp.Diff(want, statuses); d != "" {
			t.Errorf("difference (-want +statuses):\n%s", d)
		}
		// Who comes late learns that it is over.
		won, current, err := f.activations.Finish(ctx, succeeded(b, s.NowMS(), "1"))
		if err != nil || won || current.Error == nil || current.Error.Type != api.ErrLost {
			t.Errorf("Finish after the activation was lost: got won %v, record %+v and error %v, want false and error type %s", won, current, err, api.ErrLost)
		}
	})
}

func TestFinishCancelAndRepairRace(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f, ctx := newFixture(t, s), t.Context()
		for round := range 10 {
			a := f.lost()
			f.start(t, a)
			winners := make([]api.Status, 9)
			for _, err := range storagetest.Concurrently(len(winners), func(i int) error {
				switch i % 3 {
				case 0:
					won, _, err := f.activations.Finish(ctx, succeeded(a, s.NowMS()+int64(i), fmt.Sprint(i)))
					if won {
						winners[i] = api.StatusSuccess
					}
					return err
				case 1:
					_, err := f.activations.Cancel(ctx, a.Tenant, a.ActivationID, a.StartMS+int64(i))
					if err == nil {
						winners[i] = api.StatusCancelled
					}
					if api.ErrorCode(err) == api.CodeActivationTerminal {
						err = nil
					}
					return err
				default:
					_, err := f.activations.Get(ctx, a.Tenant, a.ActivationID)
					return err
				}
			}) {
				if err != nil {
					t.Fatalf("unexpected error: %v", err)
				}
			}
			final, err := f.activations.Get(ctx, a.Tenant, a.ActivationID)
			if err != nil {
				t.Fatalf("activations.Get: %v", err)
			}
			winners = slices.DeleteFunc(winners, func(s api.Status) bool { return s == "" })
			switch {
			case len(winners) > 1:
				t.Errorf("round %d: got the winners %v, want one", round, winners)
			case len(winners) == 1 && final.Status != winners[0]:
				t.Errorf("round %d: got the final status %s, want %s of the winner", round, final.Status, winners[0])
			case len(winners) == 0 && (final.Error == nil || final.Error.Type != api.ErrLost):
				t.Errorf("round %d: no writer won and the final status is %s, want an error of type %s", round, final.Status, api.ErrLost)
			}
		}
	})
}

func TestFinishNeedsItsLease(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.running()
		a.LeaseEpoch = 2
		f.start(t, a)
		old := succeeded(a, s.NowMS(), "1")
		old.LeaseEpoch = 1
		if won, current, err := f.activations.Finish(t.Context(), old); err != nil || won || current.Status != api.StatusRunning {
			t.Errorf("Finish under an earlier lease: got won %v, record %+v and error %v, want false and status %s", won, current, err, api.StatusRunning)
		}
		gone := f.running()
		if _, _, err := f.activations.Finish(t.Context(), gone); api.ErrorCode(err) != api.CodeActivationNotFound {
			t.Errorf("no record: %v; want CodeActivationNotFound", err)
		}
		if _, err := f.activations.Get(t.Context(), gone.Tenant, gone.ActivationID); api.ErrorCode(err) != api.CodeActivationNotFound {
			t.Errorf("no record: %v; want CodeActivationNotFound", err)
		}
	})
}

func TestCancelEndsARunningOne(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		a := f.running()
		f.start(t, a)
		got, err := f.activations.Cancel(t.Context(), a.Tenant, a.ActivationID, a.StartMS+7)
		if err != nil || got.Status != api.StatusCancelled || got.EndMS != a.StartMS+7 || got.DurationMS != 7 {
			t.Fatalf("Cancel: got %+v and error %v, want status %s, end %d and duration 7", got, err, api.StatusCancelled, a.StartMS+7)
		}
		got, err = f.activations.Cancel(t.Context(), a.Tenant, a.ActivationID, a.StartMS+8)
		if api.ErrorCode(err) != api.CodeActivationTerminal || got.EndMS != a.StartMS+7 {
			t.Fatalf("Cancel of a cancelled activation: got %+v and error %v, want code %s and end %d", got, err, api.CodeActivationTerminal, a.StartMS+7)
		}
	})
}

// TestCancelKeepsTheDurationOfAnAttempt: StartMS of an asynchronous activation is the time at
// which it was accepted, so the time since then is not the duration of an attempt.
func TestCancelKeepsTheDurationOfAnAttempt(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		for attempt, want := range []int64{0, 12} {
			a := f.queued()
			f.start(t, a)
			if attempt > 0 {
				failed := at(a, api.StatusQueued, attempt, 1)
				failed.DurationMS = want
				if won, _, err := f.activations.Requeue(t.Context(), failed); err != nil || !won {
					t.Fatalf("Requeue: got won %v and error %v, want true", won, err)
				}
			}
			got, err := f.activations.Cancel(t.Context(), a.Tenant, a.ActivationID, a.StartMS+3600_000)
			if err != nil || got.EndMS != a.StartMS+3600_000 || got.DurationMS != want {
				t.Errorf("Cancel after %d attempts: got %+v and error %v, want duration %d", attempt, got, err, want)
			}
		}
	})
}

// queued is an asynchronous activation that waits for its first attempt.
func (f *fixture) queued() *activations.Record {
	return activations.Queued(f.fn.Tenant, uuid.NewString(), &api.JobSpec{
		Namespace: f.fn.Namespace, Queue: api.FunctionQueuePrefix + f.fn.Name, CreatedAtMS: f.NowMS(),
		JobOptions: api.JobOptions{Target: &api.JobTarget{Function: f.fn.Name, Alias: "prod"}},
	})
}
