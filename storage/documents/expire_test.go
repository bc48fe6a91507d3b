package documents_test

import (
	"testing"

	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// TestFeedsMayExpireWhereNamespacesComeAgain: the feed of a deleted namespace expires
// while its successor is registered.
func TestFeedsMayExpireWhereNamespacesComeAgain(t *testing.T) {
	t.Parallel()
	const commands = 16 // more than a script of documents executes
	for _, b := range storagetest.Backends() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			cfg := b.Config(t)
			whole := storagetest.Open(t, cfg)
			for k := 1; k <= commands; k++ {
				cfg.ScriptPrelude = storagetest.ExpireBefore(k)
				d := newHarness(t, whole)
				d.mustWrite(put("a", "1"))
				if _, more, err := d.Clear(t.Context(), d.path, 10); more || err != nil {
					t.Fatalf("Clear: got %+v, %v; want more false and no error", more, err)
				}
				if feeds := storagetest.ShortLived(t, whole.Client(), "*"+d.path.Tenant+"*"); len(feeds) != 1 {
					t.Fatalf("got the keys %v with a time-to-live, want the feed", feeds)
				}
				late := *d
				late.Repository = documents.NewRepository(storagetest.Open(t, cfg))
				if _, err := late.write(put("b", "2")); err != nil {
					t.Errorf("expired before command %d: %v", k, err)
				}
				if feed := d.changes(2, 10); len(feed.Changes) != 1 || feed.Changes[0].Key != "b" {
					t.Errorf("expired before command %d: got %+v, want the change of b", k, feed)
				}
				if mortal := storagetest.ShortLived(t, whole.Client(), "*"+d.path.Tenant+"*"); len(mortal) > 0 {
					t.Errorf("expired before command %d: got keys %v that still expire, want none", k, mortal)
				}
				d.audit("registered while the feed expired")
			}
		})
	}
}
