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

// Scan implements statestore.Store. The server sends all records below the prefix's
// last whole segment; the rest is done here.
func (s *Store) Scan(ctx context.Context, prefix string, f *statestore.Filter) iter.Seq2[statestore.Entry, error] {
	return statestore.Entries(prefix, f, func(give func(statestore.Entry) error) error {
		if err := s.open(); err != nil {
			return err
		}
		watch := func(give func(statestore.Entry) error) error { return s.watch(ctx, prefix, give) }
		return statestore.Filtered(f, watch, give)
	})
}

// watch gives each record below prefix once.
func (s *Store) watch(ctx context.Context, prefix string, give func(statestore.Entry) error) error {
	const op = "scan the records"
	if err := s.connected(ctx, op); err != nil {
		return err
	}
	// The watch lives as long as its context, whose deadline would be the scan's.
	life, end := context.WithCancel(ctx)
	defer end()
	impatience := time.AfterFunc(s.timeout, end)
	watcher, err := s.kv.Watch(life, subjects(prefix), natsjs.IgnoreDeletes())
	if err != nil {
		return failure(ctx, op, err)
	}
	defer func() { go drain(watcher) }()
	if !impatience.Stop() {
		return failure(ctx, op, errLate)
	}
	seen := map[string]bool{}
	patience := time.NewTimer(s.timeout)
	defer patience.Stop()
	for {
		select {
		case entry, open := <-watcher.Updates():
			if !open {
				return failure(ctx, op, errors.New("the watch has ended"))
			}
			if entry == nil { // all that was there has come
				return nil
			}
			if e, ok := s.entry(ctx, entry, prefix); ok && !seen[e.Key] {
				seen[e.Key] = true
				if err := give(e); err != nil {
					return err
				}
			}
			patience.Reset(s.timeout)
		case <-patience.C:
			return failure(ctx, op, errLate)
		case <-ctx.Done():
			return failure(ctx, op, ctx.Err())
		}
	}
}

// drain ends a watch: its subscription closes once what it holds has been taken, and
// the server, unless it is silent for as long as the client waits for it, forgets it.
func drain(watcher natsjs.KeyWatcher) {
	_ = watcher.Stop() // it may have ended with its context or its connection
	for range watcher.Updates() {
		continue
	}
}

// entry is a record below prefix; what has expired goes, and what is not of this
// package's making is passed over.
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
