package documents_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

// TestAWalkMissesNothing walks page by page while others write. The walk returns every
// document that exists throughout once, and no document twice.
func TestAWalkMissesNothing(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		var steady []string
		for i := range 150 {
			steady = append(steady, fmt.Sprintf("key %03d steady", i))
		}
		for part := range slices.Chunk(steady, 50) {
			var steps []documents.Step
			for _, key := range part {
				steps = append(steps, put(key, "1"))
			}
			d.mustWrite(steps...)
		}
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for range 3 {
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					key := fmt.Sprintf("key %03d %d", rand.IntN(150), rand.IntN(3))
					step := put(key, "1")
					if rand.IntN(2) == 0 {
						step = remove(key)
					}
					if _, err := d.write(step, put(steady[rand.IntN(150)], "2")); err != nil {
						t.Errorf("write: %v", err)
						return
					}
				}
			})
		}
		for walk := range 12 {
			q := documents.Query{Limit: 1 + rand.IntN(30)}
			if walk%2 == 1 {
				q.Match = func(*documents.Record) bool { return rand.IntN(1_000) >= 0 }
			}
			var seen []string
			for {
				keys, next := d.page(q)
				seen = append(seen, keys...)
				if next == "" {
					break
				}
				q.After = next
			}
			if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
				t.Errorf("got keys %q, want them in order and each once", seen)
			}
			seen = slices.DeleteFunc(seen, func(key string) bool { return !slices.Contains(steady, key) })
			if !slices.Equal(seen, steady) {
				t.Errorf("got %d of the documents that exist throughout, want %d", len(seen), len(steady))
			}
		}
		close(stop)
		writers.Wait()
	})
}

// TestALongSearchIsCutShort: a filter that takes few is answered by short pages with a
// cursor, and ends.
func TestALongSearchIsCutShort(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		d.fill(2_500)
		q := documents.Query{Match: func(d *documents.Record) bool { return d.Key == "key 0002400" }}
		keys, next := d.page(q)
		if len(keys) != 0 || next != "key 0001999" {
			t.Errorf("Page without matches: got keys %q and next %q, want none and %q", keys, next, "key 0001999")
		}
		q.After = next
		keys, next = d.page(q)
		if len(keys) != 1 || next != "" {
			t.Errorf("Page at the end: got keys %q and next %q, want 1 key and no next", keys, next)
		}
	})
}

// fill writes n documents.
func (d *harness) fill(n int) {
	d.t.Helper()
	for from := 0; from < n; from += documents.MaxSteps {
		var steps []documents.Step
		for i := from; i < min(n, from+documents.MaxSteps); i++ {
			steps = append(steps, put(fmt.Sprintf("key %07d", i), `"value"`))
		}
		d.mustWrite(steps...)
	}
}

// TestManyDocumentsCostNoMore tests that each operation takes the server as many commands,
// including those of scripts, in a namespace of many documents as in one of few.
func TestManyDocumentsCostNoMore(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	var few map[string]map[string]int64
	for _, n := range []int{100, 30_000} {
		d := newHarness(t, storagetest.Open(t, storage.Config{URL: server.URL}))
		d.fill(n)
		all := map[string]map[string]int64{}
		for name, call := range d.calls(n) {
			if err := call(); err != nil { // the server learns the scripts
				t.Fatalf("%s: got error %v, want success", name, err)
			}
			before := d.served()
			if err := call(); err != nil {
				t.Fatalf("%s: got error %v, want success", name, err)
			}
			all[name] = d.served()
			for command, calls := range before {
				all[name][command] -= calls
				if all[name][command] == 0 {
					delete(all[name], command)
				}
			}
		}
		if few == nil {
			few = all
		}
		if diff := cmp.Diff(few, all); diff != "" {
			t.Errorf("commands with %d documents differ from those with few (-want +got):\n%s", n, diff)
		}
	}
	if get := few["get"]; len(get) != 1 || get["hget"] != 1 {
		t.Errorf("commands of a get: got %v, want 1 HGET", get)
	}
	if list := few["list"]; len(list) != 3 || list["evalsha"] != 1 || list["zrangebylex"] != 1 || list["hmget"] != 1 {
		t.Errorf("commands of a list: got %v, want 1 EVALSHA with 1 ZRANGEBYLEX and 1 HMGET", list)
	}
}

// calls returns the operations on a namespace of n documents.
func (d *harness) calls(n int) map[string]func() error {
	ctx := d.t.Context()
	last, fresh := fmt.Sprintf("key %07d", n-1), 0
	return map[string]func() error{
		"get": func() error { _, err := d.Get(ctx, d.path, last, d.now); return err },
		"put": func() error { _, err := d.write(put(last, "1")); return err },
		"new": func() error { fresh++; _, err := d.write(put(fmt.Sprint("new ", fresh), "1")); return err },
		"list": func() error {
			items, next, err := d.Page(ctx, d.path, documents.Query{After: fmt.Sprintf("key %07d", n/2)}, d.now)
			if len(items) != api.DefaultDocumentPage || next == "" {
				err = fmt.Errorf("%d items and %q", len(items), next)
			}
			return err
		},
		"expire": func() error {
			if _, err := d.write(until(d.now+1, put("goes", "1"))); err != nil {
				return err
			}
			d.now++
			_, _, err := d.ExpireDue(ctx, d.path.Tenant, d.now, 10)
			return err
		},
		"changes": func() error { _, err := d.Changes(ctx, d.path, int64(n), 10); return err },
	}
}

// served is how often the server ran each command, those of scripts among them, but for
// those that have to do with connections and notices.
func (d *harness) served() map[string]int64 {
	d.t.Helper()
	out := storagetest.Calls(d.t, d.s.Client())
	for _, command := range []string{"info", "publish", "ping", "hello", "client|setinfo"} {
		delete(out, command)
	}
	return out
}
