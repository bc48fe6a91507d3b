package documents_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/storagetest"
)

func (d *harness) changes(since int64, limit int) documents.Feed {
	d.t.Helper()
	feed, err := d.Changes(d.t.Context(), d.path, since, limit)
	if err != nil {
		d.t.Fatalf("Changes: %v", err)
	}
	return feed
}

// TestTheFeedOfDocuments reads changes in order, from any change on, and checks that lost
// changes are reported.
func TestTheFeedOfDocuments(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		if feed := d.changes(0, 10); len(feed.Changes) != 0 || feed.Latest != 0 || feed.Lost {
			t.Errorf("changes of a namespace that never existed: got %+v, want none and latest 0", feed)
		}
		d.mustWrite(put("a", "1"), until(d.now+5, put("b", "1")))
		d.mustWrite(put("a", "2"))
		d.now += 5
		d.mustWrite(remove("a"), remove("b"))
		at := api.NewMoment
		all := []api.DocumentChange{
			{ID: 1, Op: "put", Key: "a", Revision: 1, At: at(1_000_000)},
			{ID: 2, Op: "put", Key: "b", Revision: 1, At: at(1_000_000)},
			{ID: 3, Op: "put", Key: "a", Revision: 2, At: at(1_000_000)},
			{ID: 4, Op: "delete", Key: "a", Revision: 2, At: at(1_000_005)},
			{ID: 5, Op: "expire", Key: "b", Revision: 1, At: at(1_000_005)},
		}
		for since := range 6 {
			want := documents.Feed{Changes: slices.Clip(all[since:]), Latest: 5}
			if since == 5 {
				want.Changes = nil
			}
			if diff := cmp.Diff(want, d.changes(int64(since), 10)); diff != "" {
				t.Errorf("changes since %d differ (-want +got):\n%s", since, diff)
			}
		}
		if feed := d.changes(1, 2); len(feed.Changes) != 2 || feed.Changes[1].ID != 3 || feed.Latest != 5 {
			t.Errorf("page of 2 changes since 1: got %+v, want 2 and 3, with latest 5", feed)
		}
		stream := d.key(d.path.Install, d.path.Namespace, "changes")
		if err := s.Client().XDel(t.Context(), stream, "3-0").Err(); err != nil {
			t.Fatalf("XDel: %v", err)
		}
		if feed := d.changes(2, 10); feed.Lost || len(feed.Changes) != 2 {
			t.Errorf("feed after an interrupted change: got %+v, want 2 changes and none lost", feed)
		}
		if err := s.Client().XTrimMaxLen(t.Context(), stream, 1).Err(); err != nil {
			t.Fatalf("XTrimMaxLen: %v", err)
		}
		for since, lost := range []bool{true, true, true, true, false, false} {
			if feed := d.changes(int64(since), 10); feed.Lost != lost {
				t.Errorf("changes since %d: got lost %v, want %v: %+v", since, feed.Lost, lost, feed)
			}
		}
	})
}

// TestTheFeedIsBounded keeps the last api.MaxDocumentChanges of a namespace with many documents,
// and fewer of one with few: the documents and namespaces of a tenant, which have quotas, bound all
// of its feeds.
func TestTheFeedIsBounded(t *testing.T) {
	t.Parallel()
	storagetest.Each(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		stream := d.key(d.path.Install, d.path.Namespace, "changes")
		pipe := s.Client().Pipeline()
		for id := range api.MaxDocumentChanges {
			pipe.Do(t.Context(), "XADD", stream, strconv.Itoa(id+1)+"-0", "op", "put", "key", "a", "rev", "1", "at", "1")
			if pipe.Len() == 500 {
				if _, err := pipe.Exec(t.Context()); err != nil {
					t.Fatalf("pipe.Exec: %v", err)
				}
			}
		}
		const many = api.MaxDocumentChanges/api.DocumentChangesEach + 1
		pipe.HSet(t.Context(), d.key(d.path.Install, "usage"), d.path.Namespace+":c", api.MaxDocumentChanges, d.path.Namespace+":r", many)
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatalf("pipe.Exec: %v", err)
		}
		d.mustWrite(put("a", "1"), put("b", "1"))
		if n, err := s.Client().XLen(t.Context(), stream).Result(); err != nil || n != api.MaxDocumentChanges {
			t.Errorf("XLEN of the feed: got %d and error %v, want %d", n, err, api.MaxDocumentChanges)
		}
		if feed := d.changes(1, 1); !feed.Lost || feed.Changes[0].ID != 3 || feed.Latest != api.MaxDocumentChanges+2 {
			t.Errorf("changes since 1: got %+v, want Lost, change 3 first, and latest %d", feed, api.MaxDocumentChanges+2)
		}
		for _, step := range []struct{ records, kept int64 }{{200, 202 * api.DocumentChangesEach}, {0, api.MinDocumentChanges}} {
			if err := s.Client().HSet(t.Context(), d.key(d.path.Install, "usage"), d.path.Namespace+":r", step.records).Err(); err != nil {
				t.Fatalf("HSet: %v", err)
			}
			d.mustWrite(put(fmt.Sprint("c", step.records), "1"), put(fmt.Sprint("d", step.records), "1"))
			if n, err := s.Client().XLen(t.Context(), stream).Result(); err != nil || n != step.kept {
				t.Errorf("XLEN of the feed of %d documents: got %d and error %v, want %d", step.records+2, n, err, step.kept)
			}
		}
	})
}

// TestNoChangeIsMissing: of writers at once, on both of two clients, a follower hears every
// change once and in order, also over the deletion of the namespace.
func TestNoChangeIsMissing(t *testing.T) {
	t.Parallel()
	clients := twoDocuments(t)
	d := clients[0]
	woken, done := clients[1].Follow(d.path)
	defer done()
	var mu sync.Mutex
	made := map[string]int{}
	stop := make(chan struct{})
	heard := map[string]int{}
	var follower sync.WaitGroup
	follower.Go(func() {
		for last, ended := int64(0), false; ; {
			select { // first: what was made before it is read below
			case <-stop:
				ended = true
			default:
			}
			feed := clients[1].changes(last, 7)
			for _, c := range feed.Changes {
				if c.ID <= last {
					t.Errorf("got change %d after change %d, want ascending ids", c.ID, last)
				}
				last = c.ID
				heard[fmt.Sprint(c.Op, " ", c.Key, " ", c.Revision)]++
			}
			switch {
			case feed.Lost:
				t.Error("changes are lost")
				return
			case len(feed.Changes) > 0:
			case ended:
				return
			default:
				select {
				case <-woken:
				case <-stop:
				case <-time.After(10 * time.Second):
					t.Error("the follower was not woken")
					return
				}
			}
		}
	})
	for _, err := range storagetest.Concurrently(8, func(i int) error {
		c := clients[i%2]
		for n := range 40 {
			mine, shared := fmt.Sprintf("%d of writer %d", n, i), "shared"
			out, err := c.write(put(mine, "1"), put(shared, "1"))
			if err == nil {
				_, err = c.write(remove(mine))
			}
			if err != nil {
				return err
			}
			mu.Lock()
			made["put "+mine+" 1"]++
			made["delete "+mine+" 1"]++
			made[fmt.Sprint("put ", shared, " ", out[1].Revision)]++
			mu.Unlock()
			if i == 0 && n%16 == 15 {
				if _, _, err := c.Clear(t.Context(), c.path, 1_000); err != nil {
					return err
				}
			}
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
	}
	close(stop)
	follower.Wait()
	for what, n := range heard {
		// Clear deletes the documents that it finds; the deletion of a missing document is no change.
		if strings.HasPrefix(what, "delete") {
			delete(made, what)
		} else if made[what] != n {
			t.Errorf("%q: got %d changes in the feed, want %d, the number that was made", what, n, made[what])
		}
	}
	for what := range made {
		if heard[what] == 0 {
			t.Errorf("got no %q in the feed, want one", what)
		}
	}
}

// TestChangesOutliveTheirNamespace: ids go on where a namespace comes again, and its last
// changes can be read for a while.
func TestChangesOutliveTheirNamespace(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		d := newHarness(t, s)
		stream := d.key(d.path.Install, d.path.Namespace, "changes")
		d.mustWrite(put("a", "1"), put("b", "1"))
		if n, more, err := d.DeleteInstall(t.Context(), d.path.Tenant, d.path.Install, 100); n != 2 || more || err != nil {
			t.Fatalf("DeleteInstall: got %d removed, more %v and error %v, want 2 and no more", n, more, err)
		}
		if feed := d.changes(2, 10); feed.Lost || len(feed.Changes) != 2 || feed.Changes[0].Op != "delete" || feed.Changes[1].ID != 4 {
			t.Errorf("changes since 2: got %+v, want two deletions, up to 4", feed)
		}
		if ttl, err := s.Client().PTTL(t.Context(), stream).Result(); err != nil || ttl <= 0 || ttl > 24*time.Hour {
			t.Errorf("PTTL of the feed of a deleted namespace: got %v and error %v, want up to 24 h", ttl, err)
		}
		d.mustWrite(put("a", "1"))
		if ttl, err := s.Client().PTTL(t.Context(), stream).Result(); err != nil || ttl > 0 {
			t.Errorf("PTTL of the feed of a namespace in use: got %v and error %v, want none", ttl, err)
		}
		if feed := d.changes(4, 10); feed.Lost || len(feed.Changes) != 1 || feed.Changes[0].ID != 5 {
			t.Errorf("changes since 4: got %+v, want only change 5", feed)
		}
	})
}

// TestFollowersAreWoken by what another process writes.
func TestFollowersAreWoken(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"redis": storagetest.Redis(t).URL, "cluster": storagetest.Cluster(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients := documentsOf(t, url)
			woken, done := clients[1].Follow(clients[0].path)
			defer done()
			for _, what := range []string{"its subscription", "a write"} {
				select {
				case <-woken:
				case <-time.After(20 * time.Second):
					t.Fatalf("the follower slept for 20 s, want it woken by %s", what)
				}
				clients[0].mustWrite(put("a", "1"))
			}
		})
	}
}
