package jobstore

import (
	"fmt"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/floors"
)

// Store reads and writes the jobs of all tenants. It is safe for concurrent use.
type Store struct {
	store *storage.Store
	rdb   redis.UniversalClient
	// retention is how long the records of ended jobs are kept.
	retention storage.Retention
	// Floors are the scores from which the sets with a time as score are read. They belong
	// to this process: a new one reads each set once from its start.
	Floors    floors.Floors
	summaries *otter.Cache[Key, *Summary]
	notify    Notify
	events    *events.Log
}

// Notify holds the functions by which a Store reports what it changed. Both only shorten the
// wait of readers that poll the store anyway. Neither may be nil.
type Notify struct {
	// DueAt is called with the Unix time in milliseconds at which maintenance of a queue
	// becomes due.
	DueAt func(ms int64)
	// Wake is called with a queue to which pending jobs were added.
	Wake func(q Queue)
}

// summaryBytes bounds the summaries that a process caches: 200,000 of jobs without a schema, which
// may have 64 KiB.
const summaryBytes = 96 << 20

// New returns a Store over store, which keeps ended jobs for the retention of their queue, else
// for retention, whose default is api.JobRetentionMS. It calls the
// functions of notify for each change that concerns them; they must not block. DueAt is
// called when the mark is queued on a pipeline, before it is stored.
func New(store *storage.Store, retention storage.Retention, notify Notify) (*Store, error) {
	summaries, err := newSummaries()
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Store{store: store, rdb: store.Client(), retention: retention.Or(api.JobRetentionMS), summaries: summaries, notify: notify, events: events.New(store)}, nil
}
