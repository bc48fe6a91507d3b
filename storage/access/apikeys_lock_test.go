package access

import (
	"testing"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// A caller that has lost the bootstrap lock leaves the lock of the next caller alone.
func TestUnlockBootstrapOfAnother(t *testing.T) {
	t.Parallel()
	s, ctx := storagetest.Open(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())}), t.Context()
	if err := s.Client().Set(ctx, s.Keys().APIKeyBootstrap(), "the next one's", 0).Err(); err != nil {
		t.Fatalf("Set: %v", err)
	}
	if err := NewAPIKeys(s).unlockBootstrap(ctx, "mine"); err != nil {
		t.Errorf("APIKeys.unlockBootstrap: %v", err)
	}
	if holder, err := s.Client().Get(ctx, s.Keys().APIKeyBootstrap()).Result(); err != nil || holder != "the next one's" {
		t.Errorf("lock: got holder %q and error %v, want %q", holder, err, "the next one's")
	}
}
