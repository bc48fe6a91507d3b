package scheduler

import (
	"context"
	"errors"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
)

// Runner fires schedules by hand: the Ticker.
type Runner interface {
	// Run fires the schedule at path as job id, if may does not refuse what it is by
	// then. CodeScheduleNotFound, CodeScheduleBusy, CodeQueueDraining.
	Run(ctx context.Context, path storage.SchedulePath, id string, may May) (*api.ScheduleRun, error)
}

// May refuses a schedule that would run what somebody may not.
type May func(ctx context.Context, s *api.Schedule) error

// Author is who makes or changes a schedule: its ticks are invoked on their behalf.
type Author struct {
	Principal api.Principal
	Access    api.Access
	May       May
}

// Schedules is what people do with schedules. It is safe for concurrent use.
type Schedules struct {
	store     *storage.Store
	schedules *storage.Schedules
	broker    *queue.Broker
	runner    Runner
}

// NewSchedules gives the schedules in store, whose jobs are in broker and which
// runner fires by hand.
func NewSchedules(store *storage.Store, broker *queue.Broker, runner Runner) (*Schedules, error) {
	if store == nil || broker == nil || runner == nil {
		return nil, errors.New("scheduler: a store, a queue and a runner are required")
	}
	return &Schedules{store: store, schedules: storage.NewSchedules(store), broker: broker, runner: runner}, nil
}

// Create makes a schedule. CodeInvalid and CodeValidationName with the field's path,
// CodeScheduleExists, CodeScheduleLimit, and what by.May says.
func (r *Schedules) Create(ctx context.Context, tenant, namespace string, n *api.NewSchedule, by Author) (*api.ScheduleStatus, error) {
	path := storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: n.Name}
	s := n.Schedule(r.store.NowMS())
	if err := check(ctx, path, &s, by); err != nil {
		return nil, err
	}
	err := r.put(ctx, storage.SchedulePut{
		Path: path, After: &storage.StoredSchedule{Schedule: s, Principal: by.Principal, Access: by.Access},
	})
	if api.ErrorCode(err) == api.CodeStoreConflict {
		return nil, api.Errorf(api.CodeScheduleExists, "a schedule named %q exists", n.Name)
	}
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, tenant, namespace, n.Name)
}

// check refuses what no schedule can be, and what its author may not have run.
func check(ctx context.Context, path storage.SchedulePath, s *api.Schedule, by Author) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if _, err := newTiming(path.Tenant, path.Namespace, s); err != nil {
		return err
	}
	return by.May(ctx, s)
}

// put works out the next tick of a changed record, and stores both.
func (r *Schedules) put(ctx context.Context, p storage.SchedulePut) (err error) {
	if p.NextMS, err = firstTick(p.Path, &p.After.Schedule, r.store.NowMS()); err != nil {
		return err
	}
	if err := r.schedules.Put(ctx, p); err != nil {
		return err
	}
	if p.NextMS > 0 {
		r.broker.DueAt(p.NextMS)
	}
	return nil
}

// Get gives a schedule and how it stands. CodeScheduleNotFound.
func (r *Schedules) Get(ctx context.Context, tenant, namespace, name string) (*api.ScheduleStatus, error) {
	loaded, err := r.load(ctx, storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	status := r.status(loaded)
	if status.LastRun == nil {
		return status, nil
	}
	states, err := r.broker.Standing(ctx, tenant, []string{status.LastRun.JobID})
	if err != nil {
		return nil, err
	}
	status.LastRun.State = states[0]
	return status, nil
}

// load reads a schedule that exists. CodeScheduleNotFound.
func (r *Schedules) load(ctx context.Context, path storage.SchedulePath) (*storage.LoadedSchedule, error) {
	loaded, err := r.schedules.Load(ctx, path)
	if err == nil && loaded.Meta == nil {
		err = api.Errorf(api.CodeScheduleNotFound, "schedule %q does not exist", path.Name)
	}
	return loaded, err
}

// status is how a schedule stands, as far as its own records tell.
func (r *Schedules) status(s *storage.LoadedSchedule) *api.ScheduleStatus {
	state := &s.State
	status := &api.ScheduleStatus{
		Schedule: s.Meta.Schedule, NextRunMS: state.NextTickMS, LastSkip: state.LastSkip, InFlight: s.InFlight,
		Fired: state.Fired, Skipped: state.Skipped, Missed: state.Missed,
	}
	if state.Rev != s.Meta.Revision { // its change was cut short, which the ticker will find
		status.NextRunMS = tickAfterCut(s, r.store.NowMS())
	}
	if status.InFlight == nil {
		status.InFlight = []string{}
	}
	if state.LastJobID != "" {
		status.LastRun = &api.ScheduleRun{TickMS: state.LastTickMS, FiredMS: state.LastFiredMS, JobID: state.LastJobID}
	}
	return status
}

// List is a page of a namespace's schedules by name, beginning behind after. next is ""
// at the end; a page may be short and still have one.
func (r *Schedules) List(ctx context.Context, tenant, namespace, after string, limit int) (items []api.ScheduleStatus, next string, err error) {
	loaded, next, err := r.schedules.List(ctx, tenant, namespace, after, limit)
	if err != nil {
		return nil, "", err
	}
	items = make([]api.ScheduleStatus, len(loaded))
	for i := range loaded {
		items[i] = *r.status(&loaded[i])
	}
	return items, next, nil
}

// changeTries bounds how often a change is tried against those of others.
const changeTries = 20

// Update changes a schedule; with revision, only one that has it. It is by's from then
// on, unless it is disabled and nothing else: who may not run it may still stop it.
// CodeScheduleNotFound, CodePreconditionFailed, and those of Create.
func (r *Schedules) Update(ctx context.Context, tenant, namespace, name string, c *api.ScheduleChange, revision int64, by Author) (*api.ScheduleStatus, error) {
	path := storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name}
	for range changeTries {
		before, err := r.loadRevision(ctx, path, revision)
		if err != nil {
			return nil, err
		}
		if *c == (api.ScheduleChange{}) {
			return r.Get(ctx, tenant, namespace, name)
		}
		after := &storage.StoredSchedule{
			Schedule: before.Meta.With(c, r.store.NowMS()), Principal: before.Meta.Principal, Access: before.Meta.Access,
		}
		if disables := c.Enabled != nil && !*c.Enabled; !disables || *c != (api.ScheduleChange{Enabled: c.Enabled}) {
			if err := check(ctx, path, &after.Schedule, by); err != nil {
				return nil, err
			}
			after.Principal, after.Access = by.Principal, by.Access
		}
		err = r.put(ctx, storage.SchedulePut{
			Path: path, Before: before, After: after,
			Keep: after.Enabled == before.Meta.Enabled && after.SameTiming(&before.Meta.Schedule),
		})
		if err == nil {
			return r.Get(ctx, tenant, namespace, name)
		}
		if api.ErrorCode(err) != api.CodeStoreConflict {
			return nil, err
		}
	}
	return nil, keepsChanging(name)
}

func keepsChanging(name string) error {
	return api.Errorf(api.CodeStoreConflict, "schedule %q keeps changing", name)
}

// loadRevision is load of a schedule that must have a revision, 0 for any.
// CodePreconditionFailed.
func (r *Schedules) loadRevision(ctx context.Context, path storage.SchedulePath, revision int64) (*storage.LoadedSchedule, error) {
	loaded, err := r.load(ctx, path)
	if err == nil && revision != 0 && loaded.Meta.Revision != revision {
		err = api.Errorf(api.CodePreconditionFailed, "schedule %q has revision %d by now", path.Name, loaded.Meta.Revision)
	}
	return loaded, err
}

// Delete removes a schedule; with revision, only one that has it, and without, also one
// that cannot be read. Jobs that it made go on. CodeScheduleNotFound,
// CodePreconditionFailed.
func (r *Schedules) Delete(ctx context.Context, tenant, namespace, name string, revision int64) error {
	path := storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name}
	for range changeTries {
		loaded, refused := r.loadRevision(ctx, path, revision)
		if loaded != nil && loaded.Err != nil && revision == 0 {
			refused = nil
		}
		if refused != nil && api.ErrorCode(refused) != api.CodeScheduleNotFound {
			return refused
		}
		// Where there is none, what a deletion that was cut short has left goes.
		err := r.schedules.Delete(ctx, loaded)
		if err == nil {
			return refused
		}
		if api.ErrorCode(err) != api.CodeStoreConflict {
			return err
		}
	}
	return keepsChanging(name)
}

// Run fires a schedule now, as its overlap policy allows, whether or not it is enabled:
// on behalf of its author, for somebody who may use its target too. A repeat under the
// same key, where that is not "", answers with the first one's job. activationID is ""
// where the target is a queue. CodeScheduleNotFound, CodeScheduleBusy,
// CodeQueueDraining, and what may says.
func (r *Schedules) Run(ctx context.Context, tenant, namespace, name, key string, may May) (run *api.ScheduleRun, activationID string, err error) {
	path := storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: name}
	loaded, err := r.load(ctx, path)
	if err != nil {
		return nil, "", err
	}
	id := api.NewJobID()
	if key != "" {
		id = api.DerivedJobID("run", tenant, namespace, name, strconv.FormatInt(loaded.Meta.CreatedAtMS, 10), key)
	}
	if run, err = r.runner.Run(ctx, path, id, may); err != nil {
		return nil, "", err
	}
	if loaded.Meta.Ref != nil {
		activationID = run.JobID
	}
	return run, activationID, nil
}
