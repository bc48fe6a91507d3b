package storage

import (
	"context"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limits of one group commit: the number of writes in it, and its duration, retries
// included.
const (
	commitBatch   = 256
	commitTimeout = 4 * time.Second
)

// Write is one caller's share of a group commit.
type Write interface {
	// IndexEntry returns the sorted set and the entry that the write needs in it before
	// its own commands; key is "" for none. An entry that exists is left as it is.
	IndexEntry() (key string, entry redis.Z)
	// Queue adds the write's commands to the pipeline and keeps their replies.
	// indexed is the command that adds its index entry, nil for none.
	Queue(ctx context.Context, pipe redis.Pipeliner, indexed *redis.IntCmd)
}

// queueBatch adds the commands of a batch to a pipeline. Entries of one index go in
// one command: on KVRocks each ZADD locks the set and writes its size again.
func queueBatch(ctx context.Context, pipe redis.Pipeliner, batch []Write) {
	entries := map[string][]redis.Z{}
	keys := make([]string, len(batch))
	for i, w := range batch {
		key, entry := w.IndexEntry()
		keys[i] = key
		if key != "" {
			entries[key] = append(entries[key], entry)
		}
	}
	indexed := make(map[string]*redis.IntCmd, len(entries))
	for key, of := range entries {
		indexed[key] = pipe.ZAddNX(ctx, key, of...)
	}
	for i, w := range batch {
		w.Queue(ctx, pipe, indexed[keys[i]])
	}
}

// commitPipeline returns the pipeline for a batch: a transaction where the store gains
// by it (see transacts). Each command keeps its own reply there, too. Scripts stay
// out of it: what a script reads within a transaction depends on the server.
func (s *Store) commitPipeline(batch []Write) redis.Pipeliner {
	scripted := func(w Write) bool { _, ok := w.(*scriptWrite); return ok }
	if s.transactions && !slices.ContainsFunc(batch, scripted) {
		return s.rdb.TxPipeline()
	}
	return s.rdb.Pipeline()
}

// transacts reports whether group commits are transactions: on a KVRocks that is not a
// cluster, where a transaction is a single write of RocksDB, and otherwise each command is a
// write. On a cluster the keys of a batch lie in several slots.
func (s *Store) transacts(ctx context.Context) (bool, error) {
	client, single := s.rdb.(*redis.Client)
	if !single || s.embedded {
		return false, nil
	}
	info, err := client.Info(ctx, "server").Result()
	if Refused(err) { // an access list may forbid it
		return false, nil
	}
	return strings.Contains(info, "kvrocks_version:"), Failure(ctx, "identify the store", err)
}

// Commit sends w in one pipeline with the writes of other callers, and returns
// when w has its replies: each command of w keeps its own error. Writes with the same key
// keep their order. It fails with the error of ctx when ctx ends before the replies are
// there; w is sent all the same. It fails when the Store is closed.
func (s *Store) Commit(ctx context.Context, key string, w Write) error {
	return s.commits.Do(ctx, s.stripe(key), w)
}

// CommitAlone sends w in a pipeline of its own: no other caller waits behind a large
// write. It does not keep the order of Commit. Each command of w keeps its own error.
func (s *Store) CommitAlone(ctx context.Context, w Write) {
	pipe := s.rdb.Pipeline()
	queueBatch(ctx, pipe, []Write{w})
	_, _ = pipe.Exec(ctx) // each command keeps its own error
}

// CommitScript is Script in a group commit (see Commit): one round trip carries the
// scripts and the writes of several callers.
func (s *Store) CommitScript(ctx context.Context, key, name string, keys []string, args ...any) (any, error) {
	w := &scriptWrite{script: s.scripts[name], keys: keys, args: args}
	if err := s.commits.Do(ctx, s.stripe(key), w); err != nil {
		return nil, Failure(ctx, name, err)
	}
	reply, err := w.reply.Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return s.Script(ctx, name, keys, args...)
	}
	return reply, scriptFailure(ctx, name, err)
}

// scriptWrite is a script's share of a group commit.
type scriptWrite struct {
	script *redis.Script
	keys   []string
	args   []any

	reply *redis.Cmd
}

// IndexEntry implements Write.
func (w *scriptWrite) IndexEntry() (key string, entry redis.Z) { return "", redis.Z{} }

// Queue implements Write.
func (w *scriptWrite) Queue(ctx context.Context, pipe redis.Pipeliner, _ *redis.IntCmd) {
	w.reply = w.script.EvalSha(ctx, pipe, w.keys, w.args...)
}

// stripe returns the stripe of key. A stripe has at most one group commit under way, so that
// writes with one key keep their order.
func (s *Store) stripe(key string) uint64 {
	return maphash.String(s.stripes, key) % commitStripes
}

// flushCommits executes a group commit of a stripe. Each write reads its outcome from its
// own replies: Exec's error is the first of those only.
func (s *Store) flushCommits(ctx context.Context, _ uint64, batch []Write) {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	pipe := s.commitPipeline(batch)
	queueBatch(ctx, pipe, batch)
	_, _ = pipe.Exec(ctx)
	s.metrics.batches.Observe(float64(len(batch)))
}
