package compiled_test

import (
	"testing"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/compiled"
	"github.com/codesous/sous/storage/storagetest"
)

func TestCompiledScripts(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		tenant, ctx := storagetest.Tenant(t), t.Context()
		scripts := compiled.New(s, "build one")
		const digest, text = "5a0f", "(function(){\x00 return 1 })"
		if err := scripts.Save(ctx, tenant, digest, "", "default", []byte(text)); err != nil {
			t.Fatalf("Save: %v", err)
		}
		for _, tt := range []struct {
			name                                   string
			scripts                                *compiled.Scripts
			tenant, digest, entry, handler, wanted string
		}{
			{"the same", scripts, tenant, digest, "", "default", text},
			{"another tenant", scripts, storagetest.Tenant(t), digest, "", "default", ""},
			{"another bundle", scripts, tenant, "5a0e", "", "default", ""},
			{"another entry", scripts, tenant, digest, "default", "", ""},
			{"another handler", scripts, tenant, digest, "", "other", ""},
			{"another compiler", compiled.New(s, "build two"), tenant, digest, "", "default", ""},
		} {
			got, err := tt.scripts.Load(ctx, tt.tenant, tt.digest, tt.entry, tt.handler)
			if err != nil || string(got) != tt.wanted {
				t.Errorf("Load of %s: got %q and error %v, want %q", tt.name, got, err, tt.wanted)
			}
		}
		// No entry and handler are taken for others whose texts join to the same.
		if err := scripts.Save(ctx, tenant, digest, "a\x00b", "c", []byte("one")); err != nil {
			t.Fatalf("Save: %v", err)
		}
		if got, err := scripts.Load(ctx, tenant, digest, "a", "b\x00c"); err != nil || got != nil {
			t.Errorf("Load of other names: got %q and error %v, want none", got, err)
		}
		if err := s.Client().Del(ctx, storagetest.Keys(t, s.Client(), "cs:script:*"+tenant+"*")...).Err(); err != nil {
			t.Fatalf("DEL: %v", err)
		}
		if err := scripts.Save(ctx, tenant, digest, "", "default", []byte(text)); err != nil {
			t.Fatalf("Save: %v", err)
		}
		keys := storagetest.Keys(t, s.Client(), "cs:script:*"+tenant+"*")
		if len(keys) != 1 {
			t.Fatalf("got keys %v, want one", keys)
		}
		if ttl, err := s.Client().TTL(ctx, keys[0]).Result(); err != nil || ttl < 29*24*time.Hour {
			t.Errorf("TTL: got %v and error %v, want 30 days", ttl, err)
		}
		// A damaged script is as good as none.
		if err := s.Client().SetRange(ctx, keys[0], 40, "x").Err(); err != nil {
			t.Fatalf("SETRANGE: %v", err)
		}
		if got, err := scripts.Load(ctx, tenant, digest, "", "default"); err != nil || got != nil {
			t.Errorf("Load of a damaged script: got %q and error %v, want none", got, err)
		}
	})
}
