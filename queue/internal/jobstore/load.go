package jobstore

import (
	"context"
	"iter"

	"github.com/redis/go-redis/v9"
)

// partBytes bounds the bytes that one read of jobs or batches has, unless it reads a single one.
// The store holds the reply in memory while it sends it, and serves no other client while it
// collects it.
const partBytes = 1 << 20

// Find returns one job with all its details. Errors: CodeJobNotFound, CodeStoreUnavailable.
func (s *Store) Find(ctx context.Context, tenant, id string) (*Record, error) {
	r, err := s.FindWith(ctx, tenant, id, DetailFields...)
	if err == nil && r == nil {
		return nil, NotFound(id)
	}
	return r, err
}

// FindWith returns one job with the given details, nil if it does not exist. Errors:
// CodeStoreUnavailable.
func (s *Store) FindWith(ctx context.Context, tenant, id string, fields ...string) (*Record, error) {
	found, err := s.readJobs(ctx, tenant, []string{id}, fields)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Parts reads jobs of a tenant with the given details, in the order of ids, and yields them in
// parts of about 1 MiB, at least one job each. The record of a job that does not exist is nil.
// A part is read when the one before it has been handled. A caller that keeps records must
// bound their sizes itself. The sequence ends with the first error, which may be that of a job
// that cannot be decoded. Errors: CodeStoreUnavailable.
//
// The sizes of several jobs are read before them. A job that grows in between is read whole.
func (s *Store) Parts(ctx context.Context, tenant string, ids []string, fields ...string) iter.Seq2[[]*Record, error] {
	return func(yield func([]*Record, error) bool) {
		sizes, err := s.sizes(ctx, tenant, ids, fields)
		if err != nil {
			yield(nil, err)
			return
		}
		for len(ids) > 0 {
			n, _ := firstPart(sizes)
			part, err := s.readJobs(ctx, tenant, ids[:n], fields)
			if !yield(part, err) || err != nil {
				return
			}
			ids, sizes = ids[n:], sizes[n:]
		}
	}
}

// firstPart returns how many records one read takes of those with the given sizes, at least one,
// and their bytes.
func firstPart(sizes []int64) (n int, bytes int64) {
	for n < len(sizes) && (n == 0 || bytes+sizes[n] <= partBytes) {
		bytes += sizes[n]
		n++
	}
	return n, bytes
}

// sizes returns the bytes that a read of each job has, without those of its short details.
func (s *Store) sizes(ctx context.Context, tenant string, ids, fields []string) ([]int64, error) {
	out := make([]int64, len(ids))
	if len(ids) < 2 {
		return out, nil
	}
	keys := s.store.JobKeys(tenant)
	pipe := s.rdb.Pipeline()
	var replies []*redis.IntCmd
	for _, id := range ids {
		replies = append(replies, pipe.StrLen(ctx, keys.Spec(id)))
		for _, field := range fields {
			if field == FieldCheckpoint || field == fieldResult {
				replies = append(replies, pipe.HStrLen(ctx, keys.Meta(id), field))
			}
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read the sizes of jobs", err)
	}
	each := len(replies) / len(ids)
	for i, reply := range replies {
		out[i/each] += reply.Val()
	}
	return out, nil
}

// readJobs reads jobs by one round trip. It fails as a whole if one of them cannot be decoded.
func (s *Store) readJobs(ctx context.Context, tenant string, ids, fields []string) ([]*Record, error) {
	keys := s.store.JobKeys(tenant)
	pipe := s.rdb.Pipeline()
	// One command reads run and spec, so that they belong together. The details are read
	// after it: those that belong to the run are written no later than the run.
	pairs := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		pairs = append(pairs, keys.Run(id), keys.Spec(id))
	}
	stored := pipe.MGet(ctx, pairs...)
	replies := make([]*redis.SliceCmd, len(ids))
	if len(fields) > 0 {
		for i, id := range ids {
			replies[i] = pipe.HMGet(ctx, keys.Meta(id), fields...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, Failure(ctx, "read jobs", err)
	}
	out, held := make([]*Record, len(ids)), Words(stored.Val())
	for i, id := range ids {
		r, err := newRecord(id, held[2*i], held[2*i+1])
		if err != nil {
			return nil, err
		}
		out[i] = r
		if r != nil && replies[i] != nil {
			for k, text := range Words(replies[i].Val()) {
				if text != "" {
					r.Details[fields[k]] = text
					r.Size += len(text)
				}
			}
		}
	}
	return out, nil
}

// newRecord decodes a job's stored run and spec. It returns nil if text is empty, which
// means that the job does not exist.
func newRecord(id, text, spec string) (r *Record, err error) {
	r = &Record{ID: id, Stored: text, Details: map[string]string{}, Size: len(spec)}
	if r.Stored == "" {
		return nil, nil //nolint:nilnil // documented: no job
	}
	r.Run, err = ParseRun(r.Stored)
	if err != nil {
		return nil, err
	}
	r.Spec, err = DecodeSpec(spec)
	return r, err
}
