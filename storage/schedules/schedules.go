// Package schedules keeps schedules, their states, and the due set of each tenant.
//
//	schedules.go  records: put, delete, load, list
//	state.go      the changing part: ticks and counters
//	due.go        schedules by their next tick
//	event.go      the events of changes
package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// Stored is a schedule's record. Its invocations run on behalf of the principal
// that created or last changed it.
type Stored struct {
	api.Schedule
	Principal api.Principal `json:"principal"`
	Access    api.Access    `json:"access"`
}

// Loaded is a schedule with its state. The two are read one after the other, so a
// change may lie between them; a write with the Turn of the state finds out.
type Loaded struct {
	Path     storage.SchedulePath
	Meta     *Stored // nil if the schedule does not exist
	Raw      string  // the stored bytes of Meta
	State    State
	InFlight []string // jobs, by tick; MaxQueueLimit+1 at most
	Err      error    // why the record or the state cannot be read
}

// Repository keeps the schedules, their states, and each namespace's index of them. The
// index is a set: lists read it whole, in small steps; api.MaxSchedules limits it.
type Repository struct{ s *storage.Store }

// New returns the schedules in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// Put is a change of a schedule.
type Put struct {
	Path storage.SchedulePath
	// Before is the record as it was read, nil for a new schedule.
	Before *Loaded
	// After is the new record.
	After *Stored
	// NextMS is its next tick, 0 for none.
	NextMS int64
	// Keep retains the next tick of the state, in place of NextMS, if the state still belongs
	// to Before: neither the timing nor Enabled changed.
	Keep bool
}

// Put creates or changes a schedule. A repeat of the same change succeeds. A crash after
// each of the writes of a change from revision 4 to 5 leaves:
//
//	SET  …:meta         revision 5, the state of revision 4: rev differs from the record's
//	HSET …:state        revision 5 with its next tick; the tenant's due set has the old one
//	ZADD cs:schedule:t_acme01:due 1767225660000 default/nightly
//	                    complete; the tenant may be looked at too late
//	ZADD cs:due:1 LT 1767225660000 schedule/t_acme01
//
// The same Put again completes it. Otherwise the ticker computes the tick again where rev
// differs, and the sweeper corrects the due times. CodeStoreConflict if the schedule has
// changed since it was read; CodeScheduleLimit, CodeTenantQuota.
func (r *Repository) Put(ctx context.Context, p Put) error {
	before, keep := "", ""
	if p.Before != nil {
		before = p.Before.Raw
		if p.Keep {
			keep = strconv.FormatInt(p.Before.Meta.Revision, 10)
		}
	} else if err := storage.NewTenants(r.s).RegisterNamespace(ctx, p.Path.Tenant, p.Path.Namespace); err != nil {
		return err
	}
	raw, err := storage.Encode(p.After)
	if err != nil {
		return err
	}
	args := []any{
		before, raw, p.After.Revision, p.Path.Name, p.Path.Member(), p.NextMS, keep,
		// No turn of an earlier schedule of this name is used again: turns grow by one a
		// write, and a write takes a millisecond at least.
		p.After.CreatedAtMS,
		api.MaxSchedules,
		p.change(ctx),
	}
	return r.s.Taking(ctx, p.Path.Tenant, func() error {
		_, err := r.s.ScriptThen(ctx, storage.ScriptSchedulePut, r.keys(p.Path), args, func(pipe redis.Pipeliner) {
			if p.NextMS > 0 {
				storage.MarkDue(ctx, pipe, storage.DueSchedulePrefix+p.Path.Tenant, p.NextMS)
			}
		})
		return err
	}, p.amounts(raw)...)
}

// amounts returns what a change adds to the quotas, where raw is the new record. A change that
// adds nothing is never refused.
func (p *Put) amounts(raw string) []quota.Amount {
	bytes := p.After.BytesPerMinute(len(raw))
	if p.Before == nil {
		return []quota.Amount{storage.One(quota.Schedules), {Quota: quota.ScheduleBytes, Amount: bytes}}
	}
	if p.Before.Meta != nil {
		bytes -= p.Before.Meta.BytesPerMinute(len(p.Before.Raw))
	}
	return []quota.Amount{{Quota: quota.ScheduleBytes, Amount: bytes}}
}

// keys returns the keys of the scripts that put and delete a schedule.
func (r *Repository) keys(p storage.SchedulePath) []string {
	state, inFlight := r.s.ScheduleKeys(p)
	return []string{r.s.ScheduleMetaKey(p), state, r.s.Keys().ScheduleIndex(p.Tenant, p.Namespace), r.s.ScheduleDueKey(p.Tenant), inFlight, r.s.JobKeys(p.Tenant).Events()}
}

// Delete removes the schedule that Load has returned, or, where Load found none, the
// remains of an interrupted write. CodeStoreConflict if the schedule has changed since.
func (r *Repository) Delete(ctx context.Context, s *Loaded) error {
	_, err := r.s.Script(ctx, storage.ScriptScheduleDelete, r.keys(s.Path), s.Raw, s.Path.Name, s.Path.Member(), changeOf(ctx, event.ScheduleDeleted, r.s.NowMS(), s.Path, s.Meta))
	if err == nil && s.Meta != nil {
		r.s.Returned(ctx, s.Path.Tenant, storage.One(quota.Schedules), quota.Amount{Quota: quota.ScheduleBytes, Amount: s.Meta.BytesPerMinute(len(s.Raw))})
	}
	return err
}

// Load reads a schedule and its state. Meta is nil where the schedule does not exist.
func (r *Repository) Load(ctx context.Context, path storage.SchedulePath) (*Loaded, error) {
	loaded, err := r.LoadMany(ctx, []storage.SchedulePath{path})
	if err != nil {
		return nil, err
	}
	return &loaded[0], loaded[0].Err
}

// LoadMany reads schedules of any tenants, with their states, in one round trip. A
// schedule that cannot be read has its error in Err.
func (r *Repository) LoadMany(ctx context.Context, paths []storage.SchedulePath) ([]Loaded, error) {
	type reads struct {
		meta     *redis.StringCmd
		state    *redis.MapStringStringCmd
		inFlight *redis.StringSliceCmd
	}
	sent := make([]reads, len(paths))
	pipe := r.s.Client().Pipeline()
	for i, p := range paths {
		state, inFlight := r.s.ScheduleKeys(p)
		// The record last: a change in between leaves the reader with the state of an
		// earlier turn, which every later write refuses.
		sent[i].state = pipe.HGetAll(ctx, state)
		sent[i].inFlight = pipe.ZRange(ctx, inFlight, 0, api.MaxQueueLimit)
		sent[i].meta = pipe.Get(ctx, r.s.ScheduleMetaKey(p))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	out := make([]Loaded, len(paths))
	for i, p := range paths {
		var err error
		for _, cmd := range []redis.Cmder{sent[i].meta, sent[i].state, sent[i].inFlight} {
			if of := cmd.Err(); of != nil && !errors.Is(of, redis.Nil) {
				err = storage.Failure(ctx, "read schedules", of)
			}
		}
		if err == nil {
			out[i], err = loadedOf(p, sent[i].meta.Val(), sent[i].state.Val())
		} else if ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable {
			return nil, err
		}
		if err != nil {
			out[i].Path, out[i].Err = p, fmt.Errorf("schedule %s of %s: %w", p.Member(), p.Tenant, err)
		}
		out[i].InFlight = sent[i].inFlight.Val()
	}
	return out, nil
}

func loadedOf(path storage.SchedulePath, raw string, state map[string]string) (s Loaded, err error) {
	s = Loaded{Path: path, Raw: raw}
	s.State, err = parseState(state)
	if err != nil || raw == "" {
		return s, err
	}
	meta, err := storage.Decode[Stored](raw)
	s.Meta = &meta
	return s, err
}

// Names returns a page of the names of a namespace's schedules, in order, after the name
// after. next is "" at the end. A name may belong to a schedule whose creation or deletion
// was interrupted.
func (r *Repository) Names(ctx context.Context, tenant, namespace, after string, limit int) (names []string, next string, err error) {
	return r.s.PageOfSet(ctx, r.s.Keys().ScheduleIndex(tenant, namespace), after, limit)
}

// AllNames returns what all pages of Names return, in order, for callers that read all of them,
// and the number of commands that it took.
func (r *Repository) AllNames(ctx context.Context, tenant, namespace string) (names []string, reads int, err error) {
	return r.s.Members(ctx, r.s.Keys().ScheduleIndex(tenant, namespace))
}

// List returns a page of a namespace's schedules by name, after the name after. next is ""
// at the end. A page may be short and still have a next.
func (r *Repository) List(ctx context.Context, tenant, namespace, after string, limit int) (items []Loaded, next string, err error) {
	names, next, err := r.Names(ctx, tenant, namespace, after, limit)
	if err != nil {
		return nil, "", err
	}
	for part := range slices.Chunk(names, 50) { // records may have 64 KiB
		paths := make([]storage.SchedulePath, len(part))
		for i, name := range part {
			paths[i] = storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name}
		}
		loaded, err := r.LoadMany(ctx, paths)
		if err != nil {
			return nil, "", err
		}
		for _, s := range loaded {
			if s.Err != nil {
				return nil, "", s.Err
			}
			if s.Meta != nil {
				items = append(items, s)
			}
		}
	}
	return items, next, nil
}
