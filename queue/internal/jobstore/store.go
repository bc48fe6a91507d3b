package jobstore

import (
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// Store reads and writes the jobs of all tenants. It is safe for concurrent use.
type Store struct {
	store       *storage.Store
	rdb         redis.UniversalClient
	RetentionMS int64
	Floors      storage.Floors
	summaries   *otter.Cache[Key, *Summary]
	notify      Notify
}

// Notify holds the functions by which a Store reports what it changed.
type Notify struct {
	// DueAt is called with the moment, in milliseconds, at which maintenance of a
	// queue becomes due.
	DueAt func(ms int64)
	// Wake is called with a queue that has got pending jobs.
	Wake func(q Queue)
}

// maxSummaries bounds the summaries that a process remembers.
const maxSummaries = 200_000

// New returns a Store over store. Ended jobs are kept for retention.
func New(store *storage.Store, retention time.Duration, notify Notify) (*Store, error) {
	briefs, err := otter.New(&otter.Options[Key, *Summary]{MaximumSize: maxSummaries})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &Store{store: store, rdb: store.Client(), RetentionMS: retention.Milliseconds(), summaries: briefs, notify: notify}, nil
}
