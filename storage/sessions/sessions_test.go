package sessions_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/sessions"
	"github.com/codesous/sous/storage/storagetest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		key, ctx := storagetest.Tenant(t), t.Context() // any text that no other test has
		all := sessions.New(s)
		now := time.Now().Truncate(time.Millisecond)
		ends := func(session string) time.Time {
			t.Helper()
			at, err := all.Ends(ctx, key, session)
			if err != nil {
				t.Fatalf("Ends(%s): got error %v, want none", session, err)
			}
			return at
		}
		create := func(session string, in time.Duration) {
			t.Helper()
			if err := all.Create(ctx, key, session, now, now.Add(in)); err != nil {
				t.Fatalf("Create(%s): got error %v, want none", session, err)
			}
		}
		create("ended", time.Minute)
		now = now.Add(time.Minute) // an hour before the set expires, by the clock of the store
		create("one", time.Hour)
		if got := ends("one"); !got.Equal(now.Add(time.Hour)) {
			t.Errorf("Ends(one): got %v, want %v", got, now.Add(time.Hour))
		}
		for _, none := range []string{"ended", "never"} {
			if got := ends(none); !got.IsZero() {
				t.Errorf("Ends(%s): got %v, want the zero time", none, got)
			}
		}
		// A key has a bounded number of sessions: the one that ends first makes room.
		for i := range sessions.MaxPerKey {
			create(fmt.Sprint("more-", i), 2*time.Hour+time.Duration(i)*time.Second)
		}
		if got := ends("one"); !got.IsZero() {
			t.Errorf("Ends(one) after %d further sessions: got %v, want the zero time", sessions.MaxPerKey, got)
		}
		if got := ends("more-0"); got.IsZero() {
			t.Error("Ends(more-0): got the zero time, want its end")
		}
		for range 2 {
			if err := all.Delete(ctx, key, "more-0"); err != nil {
				t.Fatalf("Delete: got error %v, want none", err)
			}
		}
		if got := ends("more-0"); !got.IsZero() {
			t.Errorf("Ends(more-0) after its deletion: got %v, want the zero time", got)
		}
	})
}
