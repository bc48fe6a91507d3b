package scheduler

import (
	"context"
	"errors"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/schedules"
)

// Runner fires schedules on demand. Ticker implements it.
type Runner interface {
	// Run fires the schedule at path now, as job id, unless may refuses the schedule as it is
	// stored by then. Errors: that of may, CodeScheduleNotFound, CodeScheduleBusy,
	// CodeQueueDraining.
	Run(ctx context.Context, path storage.SchedulePath, id string, may May) (*api.ScheduleRun, error)
}

// May returns an error if the caller is not allowed to run what the schedule runs.
type May func(ctx context.Context, s *api.Schedule) error

// Author is the caller that creates or changes a schedule. Its ticks run on the author's
// behalf: Principal and Access are stored with the schedule, and May is asked before that.
type Author struct {
	Principal api.Principal
	Access    api.Access
	May       May
}

// Schedules creates, changes, lists and runs schedules. It is safe for concurrent use.
type Schedules struct {
	store     *storage.Store
	schedules *schedules.Repository
	broker    *queue.Broker
	runner    Runner
}

// NewSchedules returns the schedules in store, whose jobs are in broker. runner fires them on
// demand.
func NewSchedules(store *storage.Store, broker *queue.Broker, runner Runner) (*Schedules, error) {
	if store == nil || broker == nil || runner == nil {
		return nil, errors.New("scheduler: a store, a queue and a runner are required")
	}
	return &Schedules{store: store, schedules: schedules.New(store), broker: broker, runner: runner}, nil
}

// Create creates a schedule. Errors: CodeInvalid and CodeValidationName with the field's
// path, CodeScheduleExists, CodeScheduleLimit, and that of by.May.
func (r *Schedules) Create(ctx context.Context, tenant, namespace string, n *api.NewSchedule, by Author) (*api.ScheduleStatus, error) {
	path := storage.SchedulePath{Tenant: tenant, Namespace: namespace, Name: n.Name}
	s := n.Schedule(r.store.NowMS())
	if err := check(ctx, path, &s, by); err != nil {
		return nil, err
	}
	err := r.put(ctx, schedules.Put{
		Path: path, After: &schedules.Stored{Schedule: s, Principal: by.Principal, Access: by.Access},
	})
	if api.ErrorCode(err) == api.CodeStoreConflict {
		return nil, api.Errorf(api.CodeScheduleExists, "a schedule named %q exists", n.Name)
	}
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, tenant, namespace, n.Name)
}

// check refuses an invalid schedule, and one that its author is not allowed to run.
func check(ctx context.Context, path storage.SchedulePath, s *api.Schedule, by Author) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if _, err := newTiming(path.Tenant, path.Namespace, s); err != nil {
		return err
	}
	return by.May(ctx, s)
}

// put computes the first tick after the change of a schedule, and stores both. It wakes the loop if
// the tick is near; see schedules.Repository.Put for what a crash in between leaves.
func (r *Schedules) put(ctx context.Context, p schedules.Put) error {
	next, err := firstTick(p.Path, &p.After.Schedule, p.After.UpdatedAtMS)
	if err != nil {
		return err
	}
	p.NextMS = next
	if err := r.schedules.Put(ctx, p); err != nil {
		return err
	}
	if p.NextMS > 0 {
		r.broker.DueAt(p.NextMS)
	}
	return nil
}

// Get returns a schedule with its status, and the state of its last job. Error:
// CodeScheduleNotFound.
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

// load reads a schedule. Error: CodeScheduleNotFound.
func (r *Schedules) load(ctx context.Context, path storage.SchedulePath) (*schedules.Loaded, error) {
	loaded, err := r.schedules.Load(ctx, path)
	if err == nil && loaded.Meta == nil {
		err = api.Errorf(api.CodeScheduleNotFound, "schedule %q does not exist", path.Name)
	}
	return loaded, err
}

// status returns the status of a schedule, without the state of its last job. If a change of the
// schedule was interrupted, it shows the next tick that the ticker will compute.
func (r *Schedules) status(s *schedules.Loaded) *api.ScheduleStatus {
	state := &s.State
	status := &api.ScheduleStatus{
		Schedule: s.Meta.Schedule, NextRunMS: state.NextTickMS, LastSkip: state.LastSkip, InFlight: s.InFlight,
		Fired: state.Fired, Skipped: state.Skipped, Missed: state.Missed,
	}
	if state.Rev != s.Meta.Revision { // its change was interrupted; the ticker will repair it
		status.NextRunMS = tickAfterInterrupt(s, r.store.NowMS())
	}
	if status.InFlight == nil {
		status.InFlight = []string{}
	}
	if state.LastJobID != "" {
		status.LastRun = &api.ScheduleRun{TickMS: state.LastTickMS, FiredMS: state.LastFiredMS, JobID: state.LastJobID}
	}
	return status
}

// List returns a page of a namespace's schedules in the order of their names, those behind
// after. next is "" at the end; a page may be shorter than limit and still have a next one.
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

// changeTries bounds the attempts to write a change that conflicts with other changes.
const changeTries = 20

// Update changes a schedule; with a revision other than 0, only one that has this revision.
// From then on its ticks run on behalf of by, unless the change does nothing but disable it:
// a caller that is not allowed to run a schedule may still stop it. Errors:
// CodeScheduleNotFound, CodePreconditionFailed, CodeStoreConflict, and those of Create.
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
		after := &schedules.Stored{
			Schedule: before.Meta.With(c, r.store.NowMS()), Principal: before.Meta.Principal, Access: before.Meta.Access,
		}
		if disables := c.Enabled != nil && !*c.Enabled; !disables || *c != (api.ScheduleChange{Enabled: c.Enabled}) {
			if err := check(ctx, path, &after.Schedule, by); err != nil {
				return nil, err
			}
			after.Principal, after.Access = by.Principal, by.Access
		}
		err = r.put(ctx, schedules.Put{
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

// loadRevision reads a schedule that must have the given revision, 0 for any. Errors:
// CodeScheduleNotFound, CodePreconditionFailed.
func (r *Schedules) loadRevision(ctx context.Context, path storage.SchedulePath, revision int64) (*schedules.Loaded, error) {
	loaded, err := r.load(ctx, path)
	if err == nil && revision != 0 && loaded.Meta.Revision != revision {
		err = api.Errorf(api.CodePreconditionFailed, "schedule %q has revision %d now", path.Name, loaded.Meta.Revision)
	}
	return loaded, err
}

// Delete removes a schedule; with a revision other than 0, only one that has this revision,
// and without, also one that cannot be read. The jobs of its ticks are not affected. Errors:
// CodeScheduleNotFound, CodePreconditionFailed, CodeStoreConflict.
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
		// If the schedule does not exist, this removes what an interrupted deletion left.
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

// Run fires a schedule now if its overlap policy allows, whether or not it is enabled. The job
// runs on behalf of the schedule's author; may decides whether the caller may run the target
// too. A repeat with the same key, unless that is "", returns the job of the first call.
// activationID is "" if the target is a queue. Errors: that of may, CodeScheduleNotFound,
// CodeScheduleBusy, CodeQueueDraining, CodeStoreConflict.
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
	run, err = r.runner.Run(ctx, path, id, may)
	if err != nil {
		return nil, "", err
	}
	if loaded.Meta.Ref != nil {
		activationID = run.JobID
	}
	return run, activationID, nil
}
