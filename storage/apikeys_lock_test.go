package storage

import "testing"

// Whoever lost the lock of a bootstrap leaves that of the next one alone.
func TestUnlockBootstrapOfAnother(t *testing.T) {
	t.Parallel()
	s, ctx := openEmbedded(t), t.Context()
	if err := s.rdb.Set(ctx, keyBootstrap, "the next one's", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := NewKeys(s).unlockBootstrap(ctx, "mine"); err != nil {
		t.Error(err)
	}
	if holder, err := s.rdb.Get(ctx, keyBootstrap).Result(); err != nil || holder != "the next one's" {
		t.Errorf("the lock is %q %v", holder, err)
	}
}
