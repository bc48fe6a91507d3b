package storage

import (
	"errors"
	"testing"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/embedded"
)

// TestPublishChecksWhatItRead lets something change between what a publish reads
// and its script: the script must refuse, and change nothing.
func TestPublishChecksWhatItRead(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t)
	const same, other = "same as the latest", "another digest"
	tests := map[string]struct {
		sha    string // of the publish that reads first
		change func(t *testing.T, p Publish)
		want   api.Code
	}{
		"nothing, a new version":                                 {other, nil, ""},
		"nothing, the same version":                              {same, nil, ""},
		"the draft is consumed without a version, a new version": {other, consume(s, same), api.CodeStoreConflict},
		"the draft is consumed, the same version":                {same, consume(s, same), api.CodeStoreConflict},
		"another version, a new version":                         {other, another(s), api.CodeStoreConflict},
		"another version, the same version":                      {same, another(s), api.CodeStoreConflict},
		"the function is deleted, a new version":                 {other, remove(s), api.CodeFunctionNotFound},
		"the function is deleted, the same version":              {same, remove(s), api.CodeFunctionNotFound},
	}
	number := 0
	for name, tt := range tests {
		number++
		p := Publish{
			Tenant: "t_conflict", Namespace: "payments", Function: "fn-" + string(rune('a'+number)),
			SHA256: same, NowMS: s.NowMS(), Alias: "prod",
		}
		if _, err := NewFunctions(s).Create(t.Context(), api.Function{Tenant: p.Tenant, Namespace: p.Namespace, Name: p.Function}); err != nil {
			t.Fatalf("Functions.Create: %v", err)
		}
		consume(s, same)(t, withDraft(t, s, p))
		p = withDraft(t, s, p)
		p.SHA256 = tt.sha
		versions, k := NewVersions(s), s.keys.function(p.Tenant, p.Namespace, p.Function)
		before, err := versions.beforePublish(t.Context(), k, p)
		if err != nil {
			t.Fatalf("versions.beforePublish: %v", err)
		}
		if tt.change != nil {
			tt.change(t, p)
		}
		latest, err := versions.Latest(t.Context(), p.Tenant, p.Namespace, p.Function)
		if err != nil {
			t.Fatalf("versions.Latest: %v", err)
		}
		if _, _, err := versions.publish(t.Context(), k, p, before); api.ErrorCode(err) != tt.want {
			t.Errorf("%s: versions.publish: got %v; want the code tt.want", name, err)
		}
		if after, err := versions.Latest(t.Context(), p.Tenant, p.Namespace, p.Function); err != nil || tt.want != "" && after != latest {
			t.Errorf("%s: got latest version %d and error %v, want %d", name, after, err, latest)
		}
	}
}

// withDraft stores a new draft for p.
func withDraft(t *testing.T, s *Store, p Publish) Publish {
	t.Helper()
	now := s.NowMS()
	p.DraftID = api.NewDraftID(now)
	err := NewDrafts(s).Put(t.Context(), p.Tenant, p.Namespace, p.Function,
		api.Draft{DraftID: p.DraftID, SHA256: p.SHA256, CreatedAtMS: now, ExpiresAtMS: now + api.DraftTTLMS})
	if err != nil {
		t.Fatalf("Drafts.Put: %v", err)
	}
	return p
}

// consume publishes p's draft as sha.
func consume(s *Store, sha string) func(*testing.T, Publish) {
	return func(t *testing.T, p Publish) {
		t.Helper()
		p.SHA256 = sha
		if _, _, err := NewVersions(s).Publish(t.Context(), p); err != nil {
			t.Fatalf("Versions.Publish: %v", err)
		}
	}
}

// another publishes another draft.
func another(s *Store) func(*testing.T, Publish) {
	return func(t *testing.T, p Publish) {
		t.Helper()
		consume(s, "a third digest")(t, withDraft(t, s, p))
	}
}

func remove(s *Store) func(*testing.T, Publish) {
	return func(t *testing.T, p Publish) {
		t.Helper()
		if err := NewFunctions(s).Delete(t.Context(), p.Tenant, p.Namespace, p.Function, 1); err != nil {
			t.Fatalf("Functions.Delete: %v", err)
		}
	}
}

// TestDeleteChecksWhatItRead: the record that a delete read must be the one that
// it replaces.
func TestDeleteChecksWhatItRead(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t)
	if _, err := NewFunctions(s).Create(t.Context(), api.Function{Tenant: "t_conflict", Namespace: "payments", Name: "fn"}); err != nil {
		t.Fatalf("Functions.Create: %v", err)
	}
	key := s.keys.function("t_conflict", "payments", "fn").meta()
	if _, err := s.Script(t.Context(), scriptFunctionDelete, []string{key}, "something older", "{}"); api.ErrorCode(err) != api.CodeStoreConflict {
		t.Errorf("Script: got %v; want CodeStoreConflict", err)
	}
	if _, err := NewFunctions(s).Get(t.Context(), "t_conflict", "payments", "fn"); err != nil {
		t.Errorf("Functions.Get: %v", err)
	}
}

// TestPublishKnowsItsOwnDoing: a publish whose answer was lost finds its draft
// consumed, and tells its own version from another's.
func TestPublishKnowsItsOwnDoing(t *testing.T) {
	t.Parallel()
	s := openEmbedded(t)
	p := Publish{Tenant: "t_conflict", Namespace: "payments", Function: "own", SHA256: "aa", NowMS: s.NowMS()}
	if _, err := NewFunctions(s).Create(t.Context(), api.Function{Tenant: p.Tenant, Namespace: p.Namespace, Name: p.Function}); err != nil {
		t.Fatalf("Functions.Create: %v", err)
	}
	p = withDraft(t, s, p)
	consume(s, p.SHA256)(t, p)
	for name, tt := range map[string]struct {
		sha   string
		tried bool
		want  api.Code
	}{
		"its own":          {"aa", true, ""},
		"never tried":      {"aa", false, api.CodeDraftConsumed},
		"another's digest": {"bb", true, api.CodeDraftConsumed},
	} {
		p.SHA256 = tt.sha
		v, created, err := NewVersions(s).ownPublish(t.Context(), p, 1, tt.tried)
		if api.ErrorCode(err) != tt.want || created != (tt.want == "") || err == nil && v.Version != 1 {
			t.Errorf("%s: ownPublish: got %+v, created %v and error %v, want code %q, or the created version 1 if that is empty", name, v, created, err, tt.want)
		}
	}
}

func openEmbedded(t *testing.T) *Store {
	t.Helper()
	e, err := embedded.Open(t.TempDir(), zap.NewNop())
	if err != nil {
		t.Fatalf("embedded.Open: %v", err)
	}
	s, err := Open(t.Context(), Config{Embedded: e})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), e.Close()); err != nil {
			t.Errorf("errors.Join: %v", err)
		}
	})
	return s
}
