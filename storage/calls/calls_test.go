package calls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/calls"
	"github.com/codesous/sous/storage/storagetest"
)

// TestCountsOfReplicas: the calls that two replicas counted are read as one sum, without those
// that ended before the window, and with the last failure.
func TestCountsOfReplicas(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant, now := storagetest.Tenant(t), s.NowMS()
		one, two := calls.NewCounter(t.Context(), s, zap.NewNop()), calls.NewCounter(t.Context(), s, zap.NewNop())
		end := func(c *calls.Counter, function string, status api.Status, at time.Duration, ms int64) {
			a := api.Activation{ActivationID: function + string(status), Tenant: tenant, Namespace: "default", Function: function, Status: status, EndMS: now + at.Milliseconds(), DurationMS: ms}
			if status == api.StatusError {
				a.Error = &api.ActivationError{Type: "Error", Message: strings.Repeat("ä", traffic.MaxMessageBytes)}
			}
			c.Ended(&a, 128)
		}
		for range 97 {
			end(one, "mail", api.StatusSuccess, 0, 5)
		}
		end(two, "mail", api.StatusSuccess, -22*time.Hour, 0)
		end(two, "mail", api.StatusError, 0, 300)
		end(two, "mail", api.StatusCancelled, 0, 1<<40)
		end(two, "mail", api.StatusError, -24*time.Hour, 7) // before the window
		end(two, "other", api.StatusTimeout, 0, 3)
		one.Flush(t.Context())
		two.Close(t.Context())
		one.Flush(t.Context()) // writes nothing again
		got := []traffic.FunctionCalls{called("mail"), called("idle")}
		if err := calls.New(s).Add(t.Context(), tenant, "default", got); err != nil {
			t.Fatalf("Add: %v", err)
		}
		hour := time.Hour.Milliseconds()
		since := (now/hour - 23) * hour
		p50, p99 := int64(7), int64(512) // 4 + 4 * 49/97
		mail := got[0]
		if mail.LastFailure == nil || len(mail.LastFailure.Message) != traffic.MaxMessageBytes || mail.LastFailure.ActivationID != "mailerror" {
			t.Errorf("last failure: got %+v, want a message of %d bytes", mail.LastFailure, traffic.MaxMessageBytes)
		}
		got[0].LastFailure = nil
		want := []traffic.FunctionCalls{
			{FunctionDetail: mail.FunctionDetail, SinceMS: since, Calls: 100, Failures: 1, P50MS: &p50, P99MS: &p99, Durations: []traffic.DurationCount{
				{BelowMS: 1, Calls: 1}, {BelowMS: 8, Calls: 97}, {BelowMS: 512, Calls: 1}, {BelowMS: 1 << 20, Calls: 1},
			}},
			{FunctionDetail: called("idle").FunctionDetail, SinceMS: since, Durations: []traffic.DurationCount{}},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("Add: difference (-want +got):\n%s", d)
		}
	})
}

// TestARecreatedFunctionHasNoCalls: the calls of a deleted function are not those of the one that
// takes its name; a second creation of an existing function keeps them.
func TestARecreatedFunctionHasNoCalls(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		functions, now := storage.NewFunctions(s), s.NowMS()
		f := api.Function{Tenant: storagetest.Tenant(t), Namespace: "default", Name: "mail", CreatedAtMS: now - 2}
		create := func() error {
			_, err := functions.Create(t.Context(), f)
			return err
		}
		counted := func() traffic.FunctionCalls {
			t.Helper()
			got := []traffic.FunctionCalls{called("mail")}
			if err := calls.New(s).Add(t.Context(), f.Tenant, "default", got); err != nil {
				t.Fatalf("Add: %v", err)
			}
			return got[0]
		}
		if err := create(); err != nil {
			t.Fatalf("Create: %v", err)
		}
		c := calls.NewCounter(t.Context(), s, zap.NewNop())
		for _, ago := range []int64{0, time.Hour.Milliseconds() * 23} {
			c.Ended(&api.Activation{ActivationID: "a", Tenant: f.Tenant, Namespace: "default", Function: "mail", Status: api.StatusTimeout, EndMS: now - ago}, 128)
		}
		c.Close(t.Context())
		if err := create(); err != nil { // after a lost answer
			t.Fatalf("Create again: %v", err)
		}
		f.CreatedAtMS = now
		if err := create(); api.ErrorCode(err) != api.CodeFunctionExists {
			t.Fatalf("Create of another record: got error %v, want %s", err, api.CodeFunctionExists)
		}
		if got := counted(); got.Calls != 2 || got.LastFailure == nil {
			t.Errorf("existing function: got %d calls, last failure %+v, want 2 calls and a failure", got.Calls, got.LastFailure)
		}
		if err := functions.Delete(t.Context(), f.Tenant, "default", "mail", now); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		if err := create(); err != nil {
			t.Fatalf("Create after the deletion: %v", err)
		}
		if got := counted(); got.Calls != 0 || got.LastFailure != nil {
			t.Errorf("after the second creation: got %d calls, last failure %+v, want none", got.Calls, got.LastFailure)
		}
	})
}

// TestFlushOfWritesOneNamespace: a reader has the calls of its namespace at once, and those of the
// others wait for the next flush.
func TestFlushOfWritesOneNamespace(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant, c := storagetest.Tenant(t), calls.NewCounter(t.Context(), s, zap.NewNop())
		counted := func(namespace string) int64 {
			t.Helper()
			got := []traffic.FunctionCalls{called("mail")}
			if err := calls.New(s).Add(t.Context(), tenant, namespace, got); err != nil {
				t.Fatalf("Add: %v", err)
			}
			return got[0].Calls
		}
		for _, namespace := range []string{"default", "other"} {
			c.Ended(&api.Activation{ActivationID: "a", Tenant: tenant, Namespace: namespace, Function: "mail", Status: api.StatusSuccess, EndMS: s.NowMS()}, 128)
		}
		gone, end := context.WithCancel(t.Context())
		end() // the client that reads went away: the calls are not lost
		c.FlushOf(gone, tenant, "default")
		if one, other := counted("default"), counted("other"); one != 1 || other != 0 {
			t.Errorf("after FlushOf: got %d calls, and %d of the other namespace, want 1 and 0", one, other)
		}
		c.FlushOf(t.Context(), tenant, "default")
		c.Close(t.Context())
		if one, other := counted("default"), counted("other"); one != 1 || other != 1 {
			t.Errorf("after Close: got %d calls, and %d of the other namespace, want 1 of each", one, other)
		}
	})
}

// TestCountsOnceWhenTheReplyIsLost: the store may have counted a pipeline that it did not answer,
// so it is not sent again.
func TestCountsOnceWhenTheReplyIsLost(t *testing.T) {
	t.Parallel()
	network := &storagetest.ReplyLoser{Word: "hincrby"}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(network) }})
	a := api.Activation{ActivationID: "a", Tenant: storagetest.Tenant(t), Namespace: "default", Function: "mail", Status: api.StatusSuccess, EndMS: s.NowMS()}
	c := calls.NewCounter(t.Context(), s, zap.NewNop())
	c.Ended(&a, 128)
	network.Lose.Store(true)
	c.Flush(t.Context())
	if network.Lose.Load() {
		t.Error("Flush: got its reply, want it lost")
	}
	got := []traffic.FunctionCalls{called("mail")}
	if err := calls.New(s).Add(t.Context(), a.Tenant, "default", got); err != nil || got[0].Calls != 1 {
		t.Errorf("Add: got %d calls and error %v, want 1", got[0].Calls, err)
	}
}

// TestAFailedPipelineDropsItsOwnCounts: the functions of the other pipelines are counted.
func TestAFailedPipelineDropsItsOwnCounts(t *testing.T) {
	t.Parallel()
	refuser := &refuser{}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(refuser) }})
	tenant, c := storagetest.Tenant(t), calls.NewCounter(t.Context(), s, zap.NewNop())
	const functions = 3 * 512
	var of []traffic.FunctionCalls
	for i := range functions {
		a := api.Activation{ActivationID: "a", Tenant: tenant, Namespace: "default", Function: fmt.Sprintf("f%d", i), Status: api.StatusSuccess, EndMS: s.NowMS()}
		c.Ended(&a, 128)
		of = append(of, called(a.Function))
	}
	refuser.refuse.Store(true)
	c.Flush(t.Context())
	if err := calls.New(s).Add(t.Context(), tenant, "default", of); err != nil {
		t.Fatalf("Add: %v", err)
	}
	counted := 0
	for _, f := range of {
		counted += int(f.Calls)
	}
	if counted != functions-512 {
		t.Errorf("got %d functions counted, want those of 2 pipelines of 3", counted)
	}
}

// TestCloseDoesNotWaitForAStoreThatHangs: a Flush that waits for the store does not delay the end
// of the server by its own time and then by that of another one.
func TestCloseDoesNotWaitForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	hangs := &hanger{reached: make(chan struct{})}
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL, Hook: func(c redis.UniversalClient) { c.AddHook(hangs) }})
	a := api.Activation{ActivationID: "a", Tenant: storagetest.Tenant(t), Namespace: "default", Function: "mail", Status: api.StatusSuccess, EndMS: s.NowMS()}
	life, end := context.WithCancel(t.Context())
	c := calls.NewCounter(life, s, zap.NewNop())
	c.Ended(&a, 128)
	hangs.hang.Store(true)
	flushed := make(chan struct{})
	go func() { c.Flush(life); close(flushed) }()
	<-hangs.reached
	c.Close(t.Context())
	select {
	case <-flushed:
		t.Error("Close: got the end of the Flush before it, want it to wait for the store longer than Close")
	default:
	}
	end()
	<-flushed
}

// called returns a function without calls.
func called(name string) traffic.FunctionCalls {
	return traffic.FunctionCalls{FunctionDetail: api.FunctionDetail{Function: api.Function{Name: name}}}
}
