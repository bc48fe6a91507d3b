package storage_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

// pages reads the list of the fixture's function to its end.
func (f *fixture) pages(t *testing.T, filter activations.Filter) (ids []string) {
	t.Helper()
	filter.Tenant, filter.Namespace, filter.Function = f.fn.Tenant, f.fn.Namespace, f.fn.Name
	return f.listed(t, filter)
}

// listed reads the list that filter selects to its end.
func (f *fixture) listed(t *testing.T, filter activations.Filter) (ids []string) {
	t.Helper()
	for range 10_000 {
		items, next, err := f.activations.List(t.Context(), filter)
		if err != nil {
			t.Fatalf("activations.List: %v", err)
		}
		if len(items) > filter.Limit {
			t.Fatalf("got %d items on a page, want at most %d", len(items), filter.Limit)
		}
		for _, a := range items {
			if a.Result != nil {
				t.Error("a list shows a result")
			}
			ids = append(ids, a.ActivationID)
		}
		if next == "" {
			return ids
		}
		filter.Cursor = next
	}
	t.Fatal("the list does not end")
	return nil
}

// TestListPages pages through an index with more entries in one millisecond
// than one window holds.
func TestListPages(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		base := s.NowMS() - 5000
		const n = 500
		started := make([]*activations.Record, n)
		for _, err := range storagetest.Concurrently(n, func(i int) error {
			a := f.running()
			a.StartMS = base + int64(max(0, i-450))
			if i%5 == 0 {
				a.Trigger.Type = api.TriggerAPI
			}
			started[i] = a
			_, _, err := f.activations.Start(t.Context(), a)
			if err == nil && i%3 == 0 {
				_, _, err = f.activations.Finish(t.Context(), succeeded(a, s.NowMS(), "1"))
			}
			return err
		}) {
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
		}
		tests := map[string]struct {
			filter activations.Filter
			keep   func(i int) bool
		}{
			"all":        {activations.Filter{Limit: 7}, func(int) bool { return true }},
			"one page":   {activations.Filter{Limit: 500}, func(int) bool { return true }},
			"by status":  {activations.Filter{Limit: 50, Status: api.StatusSuccess}, func(i int) bool { return i%3 == 0 }},
			"by trigger": {activations.Filter{Limit: 50, Trigger: api.TriggerAPI}, func(i int) bool { return i%5 == 0 }},
			"from":       {activations.Filter{Limit: 10, FromMS: base + 20}, func(i int) bool { return i-450 >= 20 }},
			"to":         {activations.Filter{Limit: 100, ToMS: base + 1}, func(i int) bool { return i <= 450 }},
			"between": {activations.Filter{Limit: 3, FromMS: base + 5, ToMS: base + 10, Status: api.StatusRunning},
				func(i int) bool { return i >= 455 && i < 460 && i%3 != 0 }},
			"nothing": {activations.Filter{Limit: 10, Status: api.StatusTimeout}, func(int) bool { return false }},
		}
		for name, tt := range tests {
			got := f.pages(t, tt.filter)
			startOf := map[string]int64{}
			want := 0
			for i, a := range started {
				startOf[a.ActivationID] = a.StartMS
				if tt.keep(i) {
					want++
				}
			}
			seen := map[string]bool{}
			for i, id := range got {
				if seen[id] {
					t.Errorf("%s: got %s twice, want it once", name, id)
				}
				seen[id] = true
				if i > 0 && startOf[id] > startOf[got[i-1]] {
					t.Errorf("%s: got %s behind an older one, want the newest first", name, id)
				}
			}
			if len(got) != want {
				t.Errorf("%s: %d, want %d", name, len(got), want)
			}
		}
		_, _, err := f.activations.List(t.Context(), activations.Filter{Tenant: f.fn.Tenant, Cursor: "x"})
		if api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("cursor: %v; want CodeValidationCursor", err)
		}
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		now := s.NowMS()
		sweep := func(name string, nowMS int64, limit int, want activations.SweepCounts) {
			t.Helper()
			got, err := f.activations.SweepFunction(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, nowMS, limit)
			if err != nil {
				t.Fatalf("activations.SweepFunction: %v", err)
			}
			if d := cmp.Diff(want, got.SweepCounts); d != "" {
				t.Errorf("%s: counts of the sweep differ (-want +got):\n%s", name, d)
			}
		}
		sweep("never invoked", now, 10, activations.SweepCounts{})

		// In order of start: ended, lost, running for long, lost, and too young to judge.
		var all []*activations.Record
		for i := range 5 {
			a := f.running()
			a.StartMS = now - 60_000 + int64(i)
			a.DeadlineMS = a.StartMS + 3000
			all = append(all, a)
		}
		all[2].DeadlineMS = now + 60_000
		all[4].StartMS = now
		f.start(t, all...)
		if _, _, err := f.activations.Finish(t.Context(), succeeded(all[0], now, "1")); err != nil {
			t.Fatalf("activations.Finish: %v", err)
		}
		sweep("as far as the limit", now, 2, activations.SweepCounts{Read: 2, Lost: 1, More: true})
		sweep("the rest", now, 10, activations.SweepCounts{Read: 2, Lost: 1})
		sweep("again: only what still ran", now, 10, activations.SweepCounts{Read: 1})
		if got, err := f.activations.Get(t.Context(), f.fn.Tenant, all[3].ActivationID); err != nil || got.Error == nil || got.Error.Type != api.ErrLost {
			t.Errorf("Get of a lost activation: got %+v and error %v, want error type %s", got, err, api.ErrLost)
		}
		sweep("the long one is lost too, the young one ran out", now+80_000, 10, activations.SweepCounts{Read: 2, Lost: 2})
		sweep("nothing left", now+80_000, 10, activations.SweepCounts{})
		sweep("a day later, from the start", now+25*3600_000, 10, activations.SweepCounts{Read: 5})
		for _, a := range all {
			f.expire(t, a)
		}
		sweep("after their time, as far as the limit", now+9*24*3600_000, 3, activations.SweepCounts{Trimmed: 5, Read: 2, More: true})
		sweep("after their time", now+9*24*3600_000, 3, activations.SweepCounts{})
		if got := f.pages(t, activations.Filter{Limit: 10}); len(got) != 0 {
			t.Errorf("got %v listed after the records expired, want none", got)
		}
	})
}

// expire removes a record, as the store does at the end of its time-to-live.
func (f *fixture) expire(t *testing.T, a *activations.Record) {
	t.Helper()
	if n, err := f.Client().Del(t.Context(), f.Keys().ActivationMeta(a.Tenant, a.ActivationID)).Result(); n != 1 || err != nil {
		t.Fatalf("Del of a record: got %d and error %v, want 1", n, err)
	}
}

// TestSweepKeepsEntriesOfJobsThatRunLate: an entry is as old as its activation was accepted. It
// stays as long as the record, which each attempt renews, however many entries are that old.
func TestSweepKeepsEntriesOfJobsThatRunLate(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		const day = 24 * 3600_000
		now := s.NowMS()
		var all, ran []*activations.Record
		for i := range 8 { // the last six share a millisecond
			a := f.queued()
			a.StartMS = now - 10*day + int64(min(i, 2))
			all = append(all, a)
		}
		f.start(t, all...)
		for i, a := range all {
			f.expire(t, a) // its job waited for longer than records live
			if i != 1 && i != 7 {
				if won, _, err := f.activations.Begin(t.Context(), at(a, api.StatusRunning, 1, 1)); err != nil || !won {
					t.Fatalf("Begin: got won %v and error %v, want true", won, err)
				}
				ran = append(ran, a)
			}
		}
		sweep := func(nowMS int64, limit int) (sum activations.SweepCounts, found map[string]bool) {
			t.Helper()
			found = map[string]bool{}
			for range 20 {
				c, err := f.activations.SweepFunction(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, nowMS, limit)
				if err != nil {
					t.Fatalf("activations.SweepFunction: %v", err)
				}
				for _, a := range c.Asynchronous {
					found[a.ActivationID] = true
				}
				sum.Add(c.SweepCounts)
			}
			return sum, found
		}
		if c, _ := sweep(now, 2); c.Trimmed == 0 || c.Dangling != 0 { // a page is smaller than the entries of a millisecond
			t.Errorf("sweeps with small pages: got %+v, want at least 1 trimmed", c)
		}
		for i, nowMS := range []int64{now + 2*day, now + 4*day} {
			_, found := sweep(nowMS, 10)
			listed := f.pages(t, activations.Filter{Limit: 10})
			for _, a := range ran {
				if !found[a.ActivationID] || !slices.Contains(listed, a.ActivationID) {
					t.Errorf("sweep %d, accepted at %d: swept %v, listed %v, want both", i, a.StartMS, found[a.ActivationID], slices.Contains(listed, a.ActivationID))
				}
			}
		}
		for _, a := range ran {
			f.expire(t, a)
		}
		if c, found := sweep(now+6*day, 10); c.Trimmed != len(ran) || c.Dangling != 0 || len(found) != 0 {
			t.Errorf("sweeps after the records: got %+v, want %d trimmed", c, len(ran))
		}
	})
}

// TestSweepTrimsShortRetentions: the entries of a version with a short retention are removed soon
// after its records, without a rescan, and count as expired whether or not a sweep has read the
// records. The entries of the other versions stay.
func TestSweepTrimsShortRetentions(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		now, hour := s.NowMS(), time.Hour.Milliseconds()
		ended := func(startMS, keepMS int64) *activations.Record {
			t.Helper()
			a := f.running()
			a.StartMS, a.DeadlineMS, a.RetentionMS = startMS, startMS+3000, keepMS
			if won, _, err := f.activations.RecordEnded(t.Context(), succeeded(a, startMS+1000, "1"), nil); err != nil || !won {
				t.Fatalf("RecordEnded: got won %v and error %v, want true", won, err)
			}
			return a
		}
		sweep := func(nowMS int64) (sum activations.SweepCounts) {
			t.Helper()
			for range 10 {
				c, err := f.activations.SweepFunction(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, nowMS, 10)
				if err != nil {
					t.Fatalf("activations.SweepFunction: %v", err)
				}
				sum.Add(c.SweepCounts)
			}
			return sum
		}
		var short []*activations.Record
		for i := range int64(30) {
			short = append(short, ended(now-60_000+i, 2*hour))
		}
		ended(now-60_000, 0)
		if c := sweep(now); c.Read != 31 || c.Trimmed+c.Dangling != 0 {
			t.Errorf("sweep of living records: got %+v, want 31 read and none trimmed", c)
		}
		unread := ended(now, 2*hour)
		for _, a := range append(short, unread) {
			f.expire(t, a)
		}
		if c := sweep(now + 3*hour); c.Trimmed != 31 || c.Dangling != 0 {
			t.Errorf("sweep of expired records: got %+v, want 31 trimmed and none dangling", c)
		}
	})
}

// TestSweepWaitsForManyRunning: the sweep remembers a bounded number of running
// ones, and loses none of the rest.
func TestSweepWaitsForManyRunning(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		f := newFixture(t, s)
		now := s.NowMS()
		const n = 150
		for _, err := range storagetest.Concurrently(n, func(int) error {
			a := f.running()
			a.StartMS, a.DeadlineMS = now-60_000, now+60_000
			_, _, err := f.activations.Start(t.Context(), a)
			return err
		}) {
			if err != nil {
				t.Fatalf("unexpected error: %v", err)
			}
		}
		sweep := func(nowMS int64) (sum activations.SweepCounts) {
			for range 5 {
				c, err := f.activations.SweepFunction(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, nowMS, 100)
				if err != nil {
					t.Fatalf("activations.SweepFunction: %v", err)
				}
				sum.Add(c.SweepCounts)
			}
			return sum
		}
		if c := sweep(now); c.Lost != 0 || c.Read > 5*100 {
			t.Errorf("sweep while the activations run: got %+v, want none lost and at most %d read", c, 5*100)
		}
		if c := sweep(now + 80_000); c.Lost != n {
			t.Errorf("sweep after all deadlines: got %+v, want %d lost", c, n)
		}
	})
}

// TestSweepRemovesWhatHasNoRecord: a start that was cut between its two writes
// leaves an index entry.
func TestSweepRemovesWhatHasNoRecord(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	f := newFixture(t, storagetest.Open(t, storage.Config{URL: server.URL}))
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	index := "cs:act:" + f.fn.Tenant + ":" + f.fn.Namespace + ":" + f.fn.Name + ":index"
	now := f.NowMS()
	for id, start := range map[string]int64{"old": now - 60_000, "on its way": now} {
		if err := client.ZAdd(t.Context(), index, redis.Z{Score: float64(start), Member: id}).Err(); err != nil {
			t.Fatalf("client.ZAdd: %v", err)
		}
	}
	if got := f.pages(t, activations.Filter{Limit: 10}); len(got) != 0 {
		t.Errorf("got %v listed, want none: no entry has a record", got)
	}
	c, err := f.activations.SweepFunction(t.Context(), f.fn.Tenant, f.fn.Namespace, f.fn.Name, now, 10)
	if err != nil || c.Dangling != 1 {
		t.Errorf("SweepFunction: got %+v and error %v, want 1 dangling entry", c, err)
	}
	left, err := client.ZRange(t.Context(), index, 0, -1).Result()
	if err != nil || len(left) != 1 || left[0] != "on its way" {
		t.Errorf("index after the sweep: got %v and error %v, want only %q", left, err, "on its way")
	}
}
