package jetstream

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/codesous/sous/storage/statestore"
)

var errLate = errors.New("no answer came in time")

// Scan implements statestore.Store. The server sends all records below the last complete
// segment of the prefix, and the client filters them.
func (s *Store) Scan(ctx context.Context, prefix string, f *statestore.Filter) iter.Seq2[statestore.Entry, error] {
	return statestore.Entries(prefix, f, func(give func(statestore.Entry) error) error {
		if err := s.CheckOpen(); err != nil {
			return err
		}
		watch := func(give func(statestore.Entry) error) error { return s.watch(ctx, prefix, give) }
		return statestore.Filtered(f, watch, give)
	})
}

// watch iterates over each record below prefix once, in the server's order. The timeout applies
// to the start of the watch and to the wait for each record, not to the whole scan.
func (s *Store) watch(ctx context.Context, prefix string, give func(statestore.Entry) error) error {
	const op = "scan the records"
	if err := s.connected(ctx, op); err != nil {
		return err
	}
	// The watch ends with its context; a deadline would bound the whole scan. So a timer ends
	// the context if the watch does not start in time, and another one limits each wait.
	life, end := context.WithCancel(ctx)
	defer end()
	starting := time.AfterFunc(s.timeout, end)
	watcher, err := s.kv.Watch(life, subjects(prefix), natsjs.IgnoreDeletes())
	if err != nil {
		return failure(ctx, op, err)
	}
	defer func() { go drain(watcher) }()
	if !starting.Stop() {
		return failure(ctx, op, errLate)
	}
	seen := map[string]bool{}
	next := time.NewTimer(s.timeout)
	defer next.Stop()
	for {
		select {
		case entry, open := <-watcher.Updates():
			if !open {
				return failure(ctx, op, errors.New("the watch has ended"))
			}
			if entry == nil { // all existing entries have been received
				return nil
			}
			if e, ok := s.entry(ctx, entry, prefix); ok && !seen[e.Key] {
				seen[e.Key] = true
				if err := give(e); err != nil {
					return err
				}
			}
			next.Reset(s.timeout)
		case <-next.C:
			return failure(ctx, op, errLate)
		case <-ctx.Done():
			return failure(ctx, op, ctx.Err())
		}
	}
}

// drain ends a watch. Its subscription closes once the buffered entries are read, and
// the server removes its consumer if it answers within the client's timeout.
func drain(watcher natsjs.KeyWatcher) {
	_ = watcher.Stop() // fails if its context or its connection has ended
	for range watcher.Updates() {
		continue
	}
}

// entry returns a record below prefix. It removes an expired record and ignores entries that
// this package did not write.
func (s *Store) entry(ctx context.Context, entry natsjs.KeyValueEntry, prefix string) (statestore.Entry, bool) {
	key, ok := unescape(entry.Key())
	if !ok || !strings.HasPrefix(key, prefix) {
		return statestore.Entry{}, false
	}
	d, err := decode(entry.Value())
	if err != nil || len(d.fields) == 0 {
		return statestore.Entry{}, false
	}
	if d.expired(s.clock()) {
		s.remove(ctx, entry)
		return statestore.Entry{}, false
	}
	return statestore.Entry{Key: key, Record: d.record(s.clock())}, true
}
