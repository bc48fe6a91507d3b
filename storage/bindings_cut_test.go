package storage_test

import (
	"context"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/bindings"
)

// checkBindings: one binding is listed, and found by a walk.
func checkBindings(t *testing.T, f *fixture, want int) {
	t.Helper()
	r := bindings.New(f.Store)
	items, _, err := r.List(t.Context(), f.fn.Tenant, f.fn.Namespace, "", 10)
	if err != nil || len(items) != want {
		t.Errorf("List: got %+v and error %v, want %d bindings", items, err, want)
	}
	all, err := r.All(t.Context())
	found := 0
	for _, b := range all {
		if b.Path.Tenant == f.fn.Tenant {
			found++
		}
	}
	if err != nil || found != want {
		t.Errorf("All: got %d bindings of the namespace and error %v, want %d", found, err, want)
	}
}

func bindingOf(f *fixture) storage.BindingPath {
	return storage.BindingPath{Tenant: f.fn.Tenant, Namespace: f.fn.Namespace, Name: "pay"}
}

func createBinding(f *fixture) error {
	b := bindings.Record{WorkerBinding: api.WorkerBinding{
		Name: "pay", Domain: "payments", Tasklist: "activities", Enabled: true,
		ActivityMap: map[string]api.JobTarget{"Pay": {Function: "pay"}},
	}}
	b.Normalize()
	_, err := bindings.New(f.Store).Create(context.Background(), f.fn.Tenant, f.fn.Namespace, b, 1)
	return err
}

func cutBindingCreate(_ *testing.T, _ *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	return createBinding, func(t *testing.T, f *fixture) { t.Helper(); checkBindings(t, f, 1) }
}

func cutBindingUpdate(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	if err := createBinding(f); err != nil {
		t.Fatalf("createBinding: %v", err)
	}
	return func(f *fixture) error {
			_, err := bindings.New(f.Store).Update(context.Background(), bindingOf(f), nil, 2, func(b *bindings.Record) error {
				b.Tasklist = "other"
				return nil
			})
			return err
		}, func(t *testing.T, f *fixture) {
			t.Helper()
			checkBindings(t, f, 1)
			b, err := bindings.New(f.Store).Get(t.Context(), bindingOf(f))
			if err != nil || b.Tasklist != "other" || b.Revision != 2 {
				t.Errorf("Get: got %+v and error %v, want tasklist %q at revision 2", b, err, "other")
			}
		}
}

func cutBindingDelete(t *testing.T, f *fixture) (func(*fixture) error, func(*testing.T, *fixture)) {
	t.Helper()
	if err := createBinding(f); err != nil {
		t.Fatalf("createBinding: %v", err)
	}
	return func(f *fixture) error {
		err := bindings.New(f.Store).Delete(context.Background(), bindingOf(f), nil)
		if api.ErrorCode(err) == api.CodeBindingNotFound {
			err = nil // the binding went before the cut
		}
		return err
	}, func(t *testing.T, f *fixture) { t.Helper(); checkBindings(t, f, 0) }
}
