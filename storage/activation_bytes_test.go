package storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// replies measures the replies to MGET.
type replies struct{ largest, all int }

func (*replies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		err := next(ctx, command)
		if values, ok := command.(*redis.SliceCmd); ok && command.Name() == "mget" {
			size := 0
			for _, v := range values.Val() {
				text, _ := v.(string)
				size += len(text)
			}
			r.largest = max(r.largest, size)
			r.all += size
		}
		return err
	}
}

// TestListsAreBoundedInBytes: records with large errors make pages short. A list reads a bounded number
// of bytes with each command and in all, also where the filter accepts nothing.
func TestListsAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	f := newFixture(t, s)
	const n = 300
	for _, err := range storagetest.Concurrently(n, func(int) error {
		a := f.running()
		a.Status, a.EndMS = api.StatusError, a.StartMS
		a.Error = &api.ActivationError{Type: api.ErrException, Message: strings.Repeat("x", api.MaxErrorMessageBytes)}
		_, _, err := f.activations.RecordEnded(t.Context(), a, nil)
		return err
	}) {
		if err != nil {
			t.Fatalf("RecordEnded: %v", err)
		}
	}
	var r replies
	s.Client().AddHook(&r)
	for _, filter := range []activations.Filter{{Limit: 500}, {Limit: 500, Status: api.StatusTimeout}} {
		filter.Tenant, filter.Namespace, filter.Function = f.fn.Tenant, f.fn.Namespace, f.fn.Name
		seen, pages := map[string]bool{}, 0
		for {
			r = replies{}
			items, next, err := f.activations.List(t.Context(), filter)
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			if r.largest > 3<<20 || r.all > 10<<20 {
				t.Errorf("status %q: a page read %d bytes, and %d with one command, want at most 10 and 3 MiB", filter.Status, r.all, r.largest)
			}
			for _, a := range items {
				if seen[a.ActivationID] {
					t.Errorf("got activation %s twice, want it once", a.ActivationID)
				}
				seen[a.ActivationID] = true
			}
			pages++
			if next == "" {
				break
			}
			filter.Cursor = next
		}
		if want := map[bool]int{true: n}[filter.Status == ""]; len(seen) != want || pages < 3 {
			t.Errorf("status %q: got %s, want %d in some pages", filter.Status, fmt.Sprint(len(seen), " activations in ", pages, " pages"), want)
		}
	}
}

// TestManyKeysAreReadInParts: one command reads a bounded number of records, which may be large.
func TestManyKeysAreReadInParts(t *testing.T) {
	t.Parallel()
	s := storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL})
	const n, size = 120, 64 << 10
	keys := make([]string, n)
	pipe := s.Client().Pipeline()
	for i := range keys {
		keys[i] = fmt.Sprintf("test:{%s}:%d", storagetest.Tenant(t), i)
		pipe.Set(t.Context(), keys[i], strings.Repeat("x", size), 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("Set: %v", err)
	}
	var r replies
	s.Client().AddHook(&r)
	keys = append(keys, "test:missing")
	values, err := s.GetMany(t.Context(), keys)
	if err != nil || len(values) != n+1 || len(values[n-1]) != size || values[n] != "" {
		t.Fatalf("GetMany: got %d values, error %v, want %d and an empty one", len(values), err, n)
	}
	if r.all != n*size || r.largest > 50*size {
		t.Errorf("GetMany read %d bytes, and %d with one command, want %d and at most %d", r.all, r.largest, n*size, 50*size)
	}
}
