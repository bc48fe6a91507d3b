package storage_test

import (
	"encoding/json"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/statestore"
	"github.com/codesous/sous/storage/storagetest"
)

// A conditional write whose reply is lost has an unknown outcome. The caller is not
// told that another has written what its own first try wrote.
func TestConditionalWritesWhoseRepliesAreLost(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	network := &storagetest.ReplyLoser{Word: "evalsha"}
	s := storagetest.Open(t, storage.Config{URL: server.URL, Hook: func(c redis.UniversalClient) { c.AddHook(network) }})
	repository := documents.NewRepository(s)
	path := storage.DocumentPath{Tenant: storagetest.Tenant(t), Install: "fn.payments.reconcile", Namespace: "settings"}
	writeDocument := func(condition *int64, value string) error {
		step := documents.Step{Op: api.DocumentStepPut, Key: "a", Value: json.RawMessage(value), If: condition}
		_, err := repository.Write(t.Context(), path, []documents.Step{step}, documents.Quota{}, "", s.NowMS())
		return err
	}
	if err := writeDocument(nil, "1"); err != nil {
		t.Fatalf("write a document: %v", err)
	}
	states := s.States()
	state := storagetest.Tenant(t) + ":state"
	f := newFixture(t, s)
	if _, _, err := f.publish(f.draft(t, "aa"), "aa", "prod"); err != nil {
		t.Fatalf("publish: %v", err)
	}
	// The server has the scripts, so that no reply asks for their text.
	if _, err := states.CompareAndSet(t.Context(), state+":other", statestore.Fields{"n": nil}, statestore.Fields{"n": []byte("1")}); err != nil {
		t.Fatalf("states.CompareAndSet: %v", err)
	}
	if err := storage.NewAliases(s).Delete(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "none", nil); api.ErrorCode(err) != api.CodeAliasNotFound {
		t.Fatalf("Aliases.Delete: got %v; want CodeAliasNotFound", err)
	}
	other := f.fn
	other.Name = "other"
	if _, err := f.functions.Create(t.Context(), other); err != nil {
		t.Fatalf("functions.Create: %v", err)
	}
	if err := f.functions.Delete(t.Context(), other.Tenant, other.Namespace, other.Name, 1); err != nil {
		t.Fatalf("functions.Delete: %v", err)
	}
	if _, err := f.functions.Create(t.Context(), other); err != nil {
		t.Fatalf("functions.Create: %v", err)
	}
	for name, write := range map[string]struct{ call, made func() error }{
		"document": {
			func() error { return writeDocument(new(int64(1)), "2") },
			func() error { return writeDocument(new(int64(2)), "3") },
		},
		"state": {
			func() error {
				ok, err := states.CompareAndSet(t.Context(), state, statestore.Fields{"n": nil}, statestore.Fields{"n": []byte("1")})
				if err == nil && !ok {
					err = api.Errorf(api.CodeStoreConflict, "it is not as expected")
				}
				return err
			},
			func() error {
				ok, err := statestore.CompareAndSwap(t.Context(), states, state, "n", []byte("1"), []byte("2"))
				if err == nil && !ok {
					err = api.Errorf(api.CodeStoreConflict, "it was not written")
				}
				return err
			},
		},
		"function": {
			func() error {
				return f.functions.Delete(t.Context(), other.Tenant, other.Namespace, other.Name, 2)
			},
			func() error {
				_, err := f.functions.Create(t.Context(), other)
				return err
			},
		},
		"alias": {
			func() error {
				return storage.NewAliases(s).Delete(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "prod", new(int64(1)))
			},
			func() error {
				_, err := storage.NewAliases(s).Set(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, "prod", 1, new(int64(0)), 1)
				return err
			},
		},
	} {
		network.Lose.Store(true)
		if err := write.call(); api.ErrorCode(err) != api.CodeStoreUnavailable {
			t.Errorf("%s: got %v, want %s", name, err, api.CodeStoreUnavailable)
		}
		if network.Lose.Swap(false) {
			t.Errorf("%s: got a call whose reply arrived, want the first reply lost", name)
		}
		if err := write.made(); err != nil {
			t.Errorf("%s: the write whose reply was lost was not made: %v", name, err)
		}
	}
	// Others are repeated by the client.
	network.Lose.Store(true)
	if err := writeDocument(nil, "4"); err != nil || network.Lose.Load() {
		t.Errorf("unconditional write whose reply is lost: got error %v and reply still to lose %v, want success at the second try", err, network.Lose.Load())
	}
}
