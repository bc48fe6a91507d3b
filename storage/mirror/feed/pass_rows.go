package feed

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
)

// queueGroup walks over the sets of one state of some queues.
func (w *walk) queueGroup(tenant string, paths []string, state api.JobState) bool {
	var sets []string
	for _, path := range paths {
		namespace, queue, _ := strings.Cut(path, "/")
		sets = append(sets, w.s.f.jobs.Sets(tenant, namespace, queue, state)...)
	}
	return w.each(sets, func(set string) bool {
		ended := false
		found, _, err := w.s.set(w.ctx, tenant, set, state, 0, w.p.Kind == passRebuild, func(commands int) bool {
			ended = !w.step(commands)
			return !ended
		})
		return w.took(found, ended, err)
	})
}

// functions walks over the activations of a tenant's functions.
func (w *walk) functions(tenant string) bool {
	keys := w.s.f.store.Keys()
	namespaces, commands, err := w.s.f.store.Members(w.ctx, keys.Namespaces(tenant))
	if err != nil {
		return w.fail(err)
	}
	if !w.step(commands) {
		return false
	}
	for _, namespace := range namespaces {
		for after := ""; ; {
			names, err := w.s.f.store.LexRange(w.ctx, keys.FunctionIndex(tenant, namespace), after, groupSize)
			if err != nil {
				return w.fail(storage.Failure(w.ctx, "list functions", err))
			}
			if !w.step(1) || !w.functionGroup(tenant, namespace, names) {
				return false
			}
			if len(names) < groupSize {
				break
			}
			after = names[len(names)-1]
		}
	}
	return true
}

// functionGroup walks over the activations of some functions of a namespace.
func (w *walk) functionGroup(tenant, namespace string, names []string) bool {
	indexes := make([]string, len(names))
	for i, name := range names {
		indexes[i] = w.s.f.store.Keys().ActivationIndex(tenant, namespace, name)
	}
	return w.each(indexes, func(index string) bool {
		ended := false
		p := place{tenant, namespace, names[slices.Index(indexes, index)], kindFunction}
		found, _, err := w.s.function(w.ctx, p, 0, w.p.Kind == passRebuild, func(commands int) bool {
			ended = !w.step(commands)
			return !ended
		})
		return w.took(found, ended, err)
	})
}

// took notes the end of the walk over a set. It returns false if the pass ends.
func (w *walk) took(found, ended bool, err error) bool {
	w.p.found = w.p.found || found
	if err != nil {
		return w.fail(err)
	}
	return !ended
}

// each calls walk with those keys, all of one tenant, that exist. One command finds out that none of
// them does, as of most queues for most states.
func (w *walk) each(keys []string, walk func(key string) bool) bool {
	if len(keys) == 0 {
		return true
	}
	n, err := w.s.f.store.Client().Exists(w.ctx, keys...).Result()
	if err != nil {
		return w.fail(storage.Failure(w.ctx, "count sets", err))
	}
	if !w.step(1) {
		return false
	}
	if n == 0 {
		return true
	}
	if len(keys) > 8 && n < int64(len(keys)) {
		half := len(keys) / 2
		return w.each(keys[:half], walk) && w.each(keys[half:], walk)
	}
	for _, key := range keys {
		if !walk(key) {
			return false
		}
	}
	return true
}

// jobRows walks over the rows of jobs, and finds those whose jobs have changed or are gone.
func (w *walk) jobRows() bool {
	w.p.progress = 0.9
	return w.rows(w.s.f.mirror.JobRows, func(rows []mirror.Row) (bool, int, error) {
		return w.s.jobRows(w.ctx, rows)
	})
}

// activationRows walks over the rows of activations, and finds those that have changed or are gone.
func (w *walk) activationRows() bool {
	w.p.progress = 0.95
	return w.rows(w.s.f.mirror.ActivationRows, w.activationPage)
}

// rows walks over the rows of a table.
func (w *walk) rows(read func(ctx context.Context, tenants []string, after int64, limit int) ([]mirror.Row, error), compare func([]mirror.Row) (bool, int, error)) bool {
	for {
		rows, err := read(w.ctx, w.p.Tenants, w.p.Row, pageSize)
		if err != nil {
			return w.fail(err)
		}
		if len(rows) == 0 {
			return true
		}
		found, commands, err := compare(rows)
		if err != nil {
			return w.fail(err)
		}
		w.p.found = w.p.found || found
		w.p.Row = rows[len(rows)-1].Row
		if !w.step(commands) {
			return false
		}
	}
}

// activationPage compares rows of activations with the store: those that have not ended, and those
// whose record is gone.
func (w *walk) activationPage(rows []mirror.Row) (found bool, commands int, err error) {
	gone, commands, err := w.s.f.gone(w.ctx, rows)
	if err != nil {
		return false, commands, err
	}
	differ := map[string][]string{}
	for i := range rows {
		if gone[i] || !api.Status(rows[i].Status).Terminal() {
			differ[rows[i].Tenant] = append(differ[rows[i].Tenant], rows[i].ID)
		}
	}
	for tenant, ids := range differ {
		some, err := w.s.load(w.ctx, tenant, nil, ids, false)
		found, commands = found || some, commands+2
		if err != nil {
			return found, commands, err
		}
	}
	return found, commands, nil
}

// gone reports which of the rows have no record: with one command if all have one.
func (f *Feed) gone(ctx context.Context, rows []mirror.Row) (gone []bool, commands int, err error) {
	client := f.store.Client()
	keys := make([]string, len(rows))
	for i := range rows {
		keys[i] = f.store.Keys().ActivationMeta(rows[i].Tenant, rows[i].ID)
	}
	gone = make([]bool, len(rows))
	if _, cluster := client.(*redis.ClusterClient); !cluster {
		n, err := client.Exists(ctx, keys...).Result()
		if err != nil || n == int64(len(keys)) {
			return gone, 1, storage.Failure(ctx, "read activations", err)
		}
	}
	pipe := client.Pipeline()
	replies := make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		replies[i] = pipe.Exists(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, len(keys), storage.Failure(ctx, "read activations", err)
	}
	for i, reply := range replies {
		gone[i] = reply.Val() == 0
	}
	return gone, 1 + len(keys), nil
}
