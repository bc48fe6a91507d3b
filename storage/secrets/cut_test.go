package secrets_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

// TestScriptsMayBeCutAfterAnyWrite interrupts the scripts after each of their writes, as a
// crash of KVRocks does. The remaining records are sound, and the repeated call completes
// them.
func TestScriptsMayBeCutAfterAnyWrite(t *testing.T) {
	t.Parallel()
	change := func(s *secrets.Secrets, p secrets.Place) error {
		_, _, err := s.Put(context.Background(), p, "stripe", "new", "", secrets.Condition{})
		return err
	}
	remove := func(s *secrets.Secrets, p secrets.Place) error {
		err := s.Delete(context.Background(), p, "stripe", nil)
		if api.ErrorCode(err) == api.CodeSecretNotFound {
			err = nil // it went before the cut
		}
		return err
	}
	for name, op := range map[string]struct {
		there bool // before the call
		call  func(*secrets.Secrets, secrets.Place) error
		want  []string
	}{
		"create": {false, change, []string{"stripe new"}},
		"change": {true, change, []string{"stripe new"}},
		"delete": {true, remove, nil},
	} {
		for _, b := range storagetest.AllBackends() {
			t.Run(name+"/"+b.Name, func(t *testing.T) {
				t.Parallel()
				cfg := b.Config(t)
				whole := storagetest.Open(t, cfg)
				keys, _ := newKeys(t)
				for k := 0; ; k++ {
					if k > 5 {
						t.Fatal("more writes than a script should make")
					}
					cfg.ScriptPrelude = storagetest.CutAfter(k)
					s, p := secrets.New(whole, keys), secrets.Place{Tenant: storagetest.Tenant(t), Namespace: "payments"}
					if op.there {
						put(t, s, p, "stripe", "old")
					}
					err := op.call(secrets.New(storagetest.Open(t, cfg), keys), p)
					if err != nil {
						if cause := errors.Unwrap(err); cause == nil || !strings.Contains(cause.Error(), "CUT") {
							t.Fatalf("got error %v, want the CUT of the prelude", err)
						}
						if _, _, err := s.List(t.Context(), p, "", 10); err != nil {
							t.Errorf("after %d writes: %v", k, err)
						}
						if err := op.call(s, p); err != nil {
							t.Errorf("again after %d writes: %v", k, err)
						}
					}
					checkSecrets(t, whole, s, p, op.want)
					if op.there && op.want == nil {
						if again := put(t, s, p, "stripe", "again"); again.Version < 2 {
							t.Errorf("Put after a deletion that was interrupted after %d writes: got version %d, want at least 2", k, again.Version)
						}
					}
					if err == nil {
						if k == 0 {
							t.Error("it writes nothing")
						}
						return
					}
				}
			})
		}
	}
}

// checkSecrets: the namespace has these secrets, each with its value, in its list.
func checkSecrets(t *testing.T, store *storage.Store, s *secrets.Secrets, p secrets.Place, want []string) {
	t.Helper()
	items, _, err := s.List(t.Context(), p, "", 10)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	var got []string
	for _, item := range items {
		got = append(got, item.Name+" "+string(reveal(t, s, p, item.Name).Text))
	}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("found %q, want %q", got, want)
	}
	if n := store.Client().ZCard(t.Context(), store.SecretKeys(p.Tenant, p.Namespace).Index()).Val(); n != int64(len(want)) {
		t.Errorf("got %d names in the index, want %d", n, len(want))
	}
}
