package queue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// A queue's own retention precedes that of its tenant, which precedes that of the broker. A
// shorter one purges jobs that ended before it was set, as soon as the queue is maintained.
func TestRetention(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broker, tenant, own time.Duration
		want                time.Duration
	}{
		"default": {want: api.JobRetentionMS * time.Millisecond},
		"broker":  {broker: 48 * time.Hour, want: 48 * time.Hour},
		"tenant":  {broker: 48 * time.Hour, tenant: 5 * time.Hour, want: 5 * time.Hour},
		"shorter": {tenant: 5 * time.Hour, own: 2 * time.Hour, want: 2 * time.Hour},
		"longer":  {tenant: 5 * time.Hour, own: 9 * time.Hour, want: 9 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := c
			f := newFixture(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
			keep := storage.Retention{Default: c.broker, Tenants: map[string]time.Duration{}}
			if c.tenant > 0 {
				keep.Tenants[f.tenant] = c.tenant
			}
			broker, err := queue.New(t.Context(), f.store, queue.Config{Retention: keep})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			t.Cleanup(broker.Close)
			f.Broker = broker
			f.add(t, api.NewJob{})
			f.ack(t, f.fetch(t, 1)[0], "1")
			if c.own > 0 {
				ms := c.own.Milliseconds()
				q, err := broker.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{RetentionMS: &ms})
				if err != nil || q.RetentionMS != ms {
					t.Fatalf("Configure(retention %d) = %+v, %v, want it set", ms, q, err)
				}
			}
			f.clock.advance(c.want - time.Second)
			if got := f.tend(t).Purged; got != 0 {
				t.Errorf("purged %d jobs a second before the retention of %s, want none", got, c.want)
			}
			f.clock.advance(2 * time.Second)
			if got := f.tend(t).Purged; got != 1 {
				t.Errorf("purged %d jobs after the retention of %s, want 1", got, c.want)
			}
		})
	}
}

func TestRetentionOfAQueueHasBounds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, storage.Config{Embedded: storagetest.Embedded(t, t.TempDir())})
	for ms, want := range map[int64]api.Code{
		0: "", api.MinRetentionMS: "", api.MaxRetentionMS: "",
		-1: api.CodeInvalid, 1: api.CodeInvalid, api.MinRetentionMS - 1: api.CodeInvalid, api.MaxRetentionMS + 1: api.CodeInvalid,
	} {
		_, err := f.Configure(t.Context(), f.tenant, namespace, emails, queue.Change{RetentionMS: &ms})
		if got := api.ErrorCode(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("Configure(retention %d) = %v, want the code %q", ms, err, want)
		}
	}
}

// TestPurgeSparesUnfinishedEnds: a job whose consequences were not handled yet is kept, because
// they are made from its record.
func TestPurgeSparesUnfinishedEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.add(t, api.NewJob{}, api.NewJob{})
		jobs := f.fetch(t, 2)
		for _, j := range jobs {
			f.ack(t, j, "")
		}
		// More markers than one visit handles: that of the first job is the last of them.
		markers := []redis.Z{{Score: 2, Member: jobs[0].ID}}
		for range 500 {
			markers = append(markers, redis.Z{Score: 1, Member: api.NewJobID()})
		}
		if err := f.store.Client().ZAdd(t.Context(), f.store.JobKeys(f.tenant).Queue(namespace, emails).After(), markers...).Err(); err != nil {
			t.Fatalf("ZAdd: %v", err)
		}
		f.clock.advance(api.JobRetentionMS*time.Millisecond + time.Second)
		if n := f.tend(t).Purged; n != 1 {
			t.Errorf("purged %d jobs, want the one without a marker", n)
		}
		f.get(t, jobs[0].ID)
		f.clock.advance(time.Hour)
		if n := f.tend(t).Purged; n != 1 {
			t.Errorf("purged %d jobs after the consequences were handled, want 1", n)
		}
	})
}
