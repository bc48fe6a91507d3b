package activity_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activity"
	"github.com/codesous/sous/storage/storagetest"
)

// TestNoticesAreGathered: functions that run again and again are named once a second, at most 500 in a
// notice.
func TestNoticesAreGathered(t *testing.T) {
	t.Parallel()
	store := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	heard := make(chan []activity.Function, 100)
	if err := store.Subscribe(t.Context(), func(c storage.Change) {
		if c.Kind == storage.ChangeRan {
			heard <- activity.Parse(c)
		}
	}); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	n := activity.New(t.Context(), store, zap.NewNop())
	hello := activity.Function{Tenant: "t_acme01", Namespace: "shop", Name: "hello"}
	n.Note(hello)
	if got := receive(t, heard); len(got) != 1 || got[0] != hello {
		t.Fatalf("first notice: got %v, want %v", got, hello)
	}
	began := time.Now()
	for range 1000 {
		n.Note(hello)
	}
	for i := range 600 {
		n.Note(activity.Function{Tenant: "t_acme01", Namespace: "shop", Name: fmt.Sprintf("f%d", i)})
	}
	got := receive(t, heard)
	if len(got) != 500 {
		t.Errorf("second notice: got %d functions, want 500", len(got))
	}
	if after := time.Since(began); after < 700*time.Millisecond {
		t.Errorf("second notice: got it after %v, want it a second after the first", after)
	}
	n.Note(hello)
	if got := receive(t, heard); len(got) != 1 {
		t.Errorf("third notice: got %d functions, want those since the second", len(got))
	}
}

func receive(t *testing.T, heard <-chan []activity.Function) []activity.Function {
	t.Helper()
	select {
	case got := <-heard:
		return got
	case <-time.After(10 * time.Second):
		t.Fatal("got no notice, want one")
		return nil
	}
}
