package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// StoredSchedule is a schedule's record. What it fires is invoked on behalf of whoever
// made it or changed it last.
type StoredSchedule struct {
	api.Schedule
	Principal api.Principal `json:"principal"`
	Access    api.Access    `json:"access"`
}

// LoadedSchedule is a schedule with how it stands.
type LoadedSchedule struct {
	Path     SchedulePath
	Meta     *StoredSchedule // nil: there is none
	Raw      string          // Meta as it is stored
	State    ScheduleState
	InFlight []string // jobs, by tick; MaxQueueLimit+1 at most
	Err      error    // what is stored cannot be read
}

// Schedules keeps the schedules, how they stand, and each namespace's index of them.
// The index is a set as the record's contract has it: lists read it whole, which
// MaxSchedules bounds.
type Schedules struct{ s *Store }

// NewSchedules gives the schedules in s.
func NewSchedules(s *Store) *Schedules { return &Schedules{s} }

// SchedulePut is a change of a schedule.
type SchedulePut struct {
	Path SchedulePath
	// Before is the record as it was read, nil for a new schedule.
	Before *LoadedSchedule
	// After is the record as it is to be.
	After *StoredSchedule
	// NextMS is its next tick, 0 for none.
	NextMS int64
	// Keep leaves the next tick that the state has: neither the timing nor Enabled
	// changed.
	Keep bool
}

// Put creates or changes a schedule. A repeat of the same succeeds.
// CodeStoreConflict where it is not as it was read; CodeScheduleLimit.
func (r *Schedules) Put(ctx context.Context, p SchedulePut) error {
	before, keep := "", ""
	if p.Before != nil {
		before = p.Before.Raw
		if p.Keep {
			keep = strconv.FormatInt(p.Before.Meta.Revision, 10)
		}
	} else if err := NewTenants(r.s).Register(ctx, p.Path.Tenant, p.Path.Namespace); err != nil {
		return err
	}
	raw, err := Encode(p.After)
	if err != nil {
		return err
	}
	args := []any{
		before, raw, p.After.Revision, p.Path.Name, p.Path.member(), p.NextMS, keep,
		// No turn of an earlier schedule of this name comes again: they grow by one a
		// write, and that took a millisecond at the least.
		p.After.CreatedAtMS,
		api.MaxSchedules,
	}
	_, err = r.s.ScriptThen(ctx, scriptSchedulePut, r.keys(p.Path), args, func(pipe redis.Pipeliner) {
		if p.NextMS > 0 {
			MarkDue(ctx, pipe, DueSchedulePrefix+p.Path.Tenant, p.NextMS)
		}
	})
	return err
}

// keys are those of the scripts that put and delete.
func (r *Schedules) keys(p SchedulePath) []string {
	k := r.s.keys.schedule(p.Tenant, p.Namespace, p.Name)
	return []string{k.meta(), k.state(), r.s.keys.scheduleIndex(p.Tenant, p.Namespace), r.s.keys.scheduleDue(p.Tenant), k.inflight()}
}

// Delete removes what Load has read: the schedule, or where there was none what a
// crash left of one. CodeStoreConflict where another has come.
func (r *Schedules) Delete(ctx context.Context, s *LoadedSchedule) error {
	_, err := r.s.Script(ctx, scriptScheduleDelete, r.keys(s.Path), s.Raw, s.Path.Name, s.Path.member())
	return err
}

// Load reads a schedule and how it stands; Meta is nil where there is none.
func (r *Schedules) Load(ctx context.Context, path SchedulePath) (*LoadedSchedule, error) {
	loaded, err := r.LoadMany(ctx, []SchedulePath{path})
	if err != nil {
		return nil, err
	}
	return &loaded[0], loaded[0].Err
}

// LoadMany reads schedules of any tenants, and how they stand, in one round trip.
// One that cannot be read says so in its Err.
func (r *Schedules) LoadMany(ctx context.Context, paths []SchedulePath) ([]LoadedSchedule, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	type reads struct {
		meta     *redis.StringCmd
		state    *redis.MapStringStringCmd
		inFlight *redis.StringSliceCmd
	}
	sent := make([]reads, len(paths))
	pipe := r.s.rdb.Pipeline()
	for i, p := range paths {
		k := r.s.keys.schedule(p.Tenant, p.Namespace, p.Name)
		// The record last: a change that comes in between leaves a state of an earlier
		// turn in the reader's hands, with which nothing can be written.
		sent[i].state = pipe.HGetAll(ctx, k.state())
		sent[i].inFlight = pipe.ZRange(ctx, k.inflight(), 0, api.MaxQueueLimit)
		sent[i].meta = pipe.Get(ctx, k.meta())
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	out := make([]LoadedSchedule, len(paths))
	for i, p := range paths {
		var err error
		for _, cmd := range []redis.Cmder{sent[i].meta, sent[i].state, sent[i].inFlight} {
			if of := cmd.Err(); of != nil && !errors.Is(of, redis.Nil) {
				err = Failure(ctx, "read schedules", of)
			}
		}
		if err == nil {
			out[i], err = loadedSchedule(p, sent[i].meta.Val(), sent[i].state.Val())
		} else if ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable {
			return nil, err
		}
		if err != nil {
			out[i].Path, out[i].Err = p, fmt.Errorf("schedule %s of %s: %w", p.member(), p.Tenant, err)
		}
		out[i].InFlight = sent[i].inFlight.Val()
	}
	return out, nil
}

func loadedSchedule(path SchedulePath, raw string, state map[string]string) (s LoadedSchedule, err error) {
	s = LoadedSchedule{Path: path, Raw: raw}
	if s.State, err = parseScheduleState(state); err != nil || raw == "" {
		return s, err
	}
	meta, err := Decode[StoredSchedule](raw)
	s.Meta = &meta
	return s, err
}

// Names is a page of a namespace's schedules in order, beginning behind after. next is
// "" at the end. Some may be of schedules that a crash left half-made or half-deleted.
func (r *Schedules) Names(ctx context.Context, tenant, namespace, after string, limit int) (names []string, next string, err error) {
	limit = PageLimit(limit)
	names, err = r.s.rdb.SMembers(ctx, r.s.keys.scheduleIndex(tenant, namespace)).Result()
	if err != nil {
		return nil, "", Failure(ctx, "list schedules", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	slices.Sort(names)
	if len(names) > limit {
		names = names[:limit]
		next = names[limit-1]
	}
	return names, next, nil
}

// List is a page of a namespace's schedules by name, beginning behind after. next is ""
// at the end; a page may be short and still have one.
func (r *Schedules) List(ctx context.Context, tenant, namespace, after string, limit int) (items []LoadedSchedule, next string, err error) {
	names, next, err := r.Names(ctx, tenant, namespace, after, limit)
	if err != nil {
		return nil, "", err
	}
	paths := make([]SchedulePath, len(names))
	for i, name := range names {
		paths[i] = SchedulePath{tenant, namespace, name}
	}
	items, err = r.LoadMany(ctx, paths)
	if err != nil {
		return nil, "", err
	}
	for i := range items {
		if items[i].Err != nil {
			return nil, "", items[i].Err
		}
	}
	return slices.DeleteFunc(items, func(s LoadedSchedule) bool { return s.Meta == nil }), next, nil
}
