package secrets_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

func member(name string) redis.Z { return redis.Z{Member: name} }

// Who can write to the store can neither read a secret of another name, namespace or
// tenant through a function of their own, nor put an old value back, nor another in.
func TestSealedValuesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		s, ctx := secrets.New(store, keys), t.Context()
		p := secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		put(t, s, p, "stripe", "first value")
		key := func(p secrets.Place, name string) string {
			return store.SecretKeys(p.Tenant, p.Namespace).Record(name)
		}
		record := func() map[string]any {
			raw, err := store.Client().Get(ctx, key(p, "stripe")).Bytes()
			if err != nil {
				t.Fatalf("Get: %v", err)
			}
			var rec map[string]any
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatalf("json.Unmarshal: %v", err)
			}
			return rec
		}
		first := record()
		put(t, s, p, "stripe", "second value")
		forged := func(change func(map[string]any)) string {
			rec := record()
			change(rec)
			raw, err := json.Marshal(rec)
			if err != nil {
				t.Fatalf("json.Marshal: %v", err)
			}
			return string(raw)
		}
		same := func(map[string]any) {}
		for what, move := range map[string]struct {
			to   secrets.Place
			name string
			raw  string
		}{
			"another name":      {p, "mine", forged(same)},
			"a name in another": {p, "mine", forged(func(r map[string]any) { r["name"] = "mine" })},
			"another namespace": {secrets.Place{Tenant: p.Tenant, Namespace: "mine"}, "stripe", forged(same)},
			"another tenant":    {secrets.Place{Tenant: storagetest.Tenant(t), Namespace: p.Namespace}, "stripe", forged(same)},
			"another version":   {p, "stripe", forged(func(r map[string]any) { r["version"] = 9 })},
			"an old sealed one": {p, "stripe", forged(func(r map[string]any) { r["sealed"] = first["sealed"] })},
			"nothing sealed":    {p, "stripe", forged(func(r map[string]any) { delete(r, "sealed") })},
			"garbage":           {p, "stripe", forged(func(r map[string]any) { r["sealed"] = "AAAA" })},
			"no record":         {p, "stripe", `second value`},
			"cut": {p, "stripe", forged(func(r map[string]any) {
				sealed := r["sealed"].(string)
				r["sealed"] = sealed[:len(sealed)-8]
			})},
		} {
			before, _ := store.Client().Get(ctx, key(move.to, move.name)).Result()
			if err := store.Client().Set(ctx, key(move.to, move.name), move.raw, 0).Err(); err != nil {
				t.Fatalf("Set: %v", err)
			}
			v := reveal(t, s, move.to, move.name)
			if api.ErrorCode(v.Err) != api.CodeSecretUnreadable || v.Text != nil || strings.Contains(v.Err.Error(), "second value") {
				t.Errorf("%s: Reveal: got %q and error %v, want code %s without the value", what, v.Text, v.Err, api.CodeSecretUnreadable)
			}
			if err := store.Client().Set(ctx, key(move.to, move.name), before, 0).Err(); err != nil {
				t.Fatalf("Set: %v", err)
			}
		}
		if v := reveal(t, s, p, "stripe"); string(v.Text) != "second value" {
			t.Errorf("Reveal: got %+v, want %q", v, "second value")
		}
	})
}

// A secret that is as it was is not opened again.
func TestWhatIsKnownIsNotOpened(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, store *storage.Store) {
		keys, _ := newKeys(t)
		s, p := secrets.New(store, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
		put(t, s, p, "a", "alpha")
		put(t, s, p, "b", "beta")
		names := []string{"a", "b", "none"}
		first, err := s.Reveal(t.Context(), p, names, nil)
		if err != nil {
			t.Fatalf("Reveal: %v", err)
		}
		put(t, s, p, "b", "gamma")
		second, err := s.Reveal(t.Context(), p, names, first)
		if err != nil {
			t.Fatalf("Reveal: %v", err)
		}
		first[0].Clear()
		if v := second[0]; v.Opened || string(v.Text) != "alpha" || v.Version != 1 {
			t.Errorf("unchanged secret: got %+v, want %q at version 1, not opened", v, "alpha")
		}
		if v := second[1]; !v.Opened || string(v.Text) != "gamma" || v.Version != 2 {
			t.Errorf("changed secret: got %+v, want %q at version 2, opened", v, "gamma")
		}
		if v := second[2]; v.Opened || api.ErrorCode(v.Err) != api.CodeSecretNotFound {
			t.Errorf("missing secret: got %+v, want code %s, not opened", v, api.CodeSecretNotFound)
		}
	})
}
