package queue_test

import (
	"testing"
	"time"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestNoticesOfWorkOnACluster: a notice must be published on the node that subscribers listen
// on, because the nodes of a KVRocks cluster do not forward it.
func TestNoticesOfWorkOnACluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Cluster(t)})
	sub := f.store.Client().Subscribe(t.Context(), storage.ChannelWake)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatalf("Receive: %v", err)
	}
	f.add(t, job(`1`))
	late := time.After(20 * time.Second)
	for want := f.tenant + "/" + namespace + "/" + emails; ; {
		select {
		case m := <-sub.Channel():
			if m.Payload == want {
				return
			}
		case <-late:
			t.Fatalf("got no notice in time, want that of %s", want)
		}
	}
}

// TestRepairsFindJobsOnACluster: a node of a KVRocks cluster skips keys when it scans with a
// prefix, and the repairer finds all jobs nevertheless.
func TestRepairsFindJobsOnACluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{URL: storagetest.Cluster(t)})
	id := f.add(t, job(`1`))[0].ID
	pending := f.store.JobKeys(f.tenant).Queue(namespace, emails).Set("pending")
	if n, err := f.store.Client().ZRem(t.Context(), pending, id).Result(); err != nil || n != 1 {
		t.Fatalf("ZRem of job %s: removed %d entries, error %v, want 1", id, n, err)
	}
	repairer := f.NewRepairer()
	for range 2 { // found in the first pass, repaired in the second, a minute later
		for end := false; !end; {
			findings, err := repairer.Jobs(t.Context(), f.clock.ms.Load(), 10_000)
			if err != nil {
				t.Fatalf("Jobs: %v", err)
			}
			end = findings.End
		}
		f.clock.advance(2 * time.Minute)
	}
	if got := f.fetch(t, 1); len(got) != 1 || got[0].ID != id {
		t.Errorf("fetched %+v, want the job %s", got, id)
	}
}
