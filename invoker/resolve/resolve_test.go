package resolve

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// movingAlias answers with the next version at each reading, and calls during in
// the middle of the first.
type movingAlias struct {
	reads  int64
	during func()
}

func (m *movingAlias) Resolve(context.Context, string, string, string, api.Ref) (storage.Resolved, error) {
	m.reads++
	answer := storage.Resolved{Version: api.Version{Version: m.reads}}
	if m.during != nil {
		m.during()
		m.during = nil
	}
	return answer, nil
}

// A read that a change overtakes may return the old state: no caller is answered with
// it, now or from the cache.
func TestResolverReadsAgainWhatAChangePassed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Resolver){
		"of the function": func(r *Resolver) { r.Invalidate("t_test00", "n", "f") },
		"unheard":         func(r *Resolver) { r.InvalidateAll() },
	} {
		source := &movingAlias{}
		r, err := New(source)
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		t.Cleanup(r.Close)
		source.during = func() { change(r) }
		for range 2 {
			got, err := r.Resolve(t.Context(), Target{"t_test00", "n", "f", api.Ref{Alias: "prod"}})
			if err != nil || got.Version.Version < 2 {
				t.Errorf("resolve after %s: got %+v and error %v, want version 2 or later", name, got, err)
			}
		}
	}
}
