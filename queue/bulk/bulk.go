// Package bulk retries, cancels, moves or deletes all jobs that a search selects.
//
// The mirror selects, and the store decides: the ids come from the mirror in pages, oldest job first,
// and each job is read again in the store and operated on only if it still matches (apply.go). The
// mirror's row is never trusted.
//
// An operation is a record in the state store (record.go) with its progress, and a member of the due
// set of bulk operations. A replica with a mirror claims a due operation, works on one chunk of its
// jobs, saves the progress by compare-and-set, and makes the operation due again (runner.go):
//
//	  t     replica   store                                due
//	0.0 s   A         Create: slot, due mark, record       0.0 s
//	0.1 s   A         claims it; jobs 1 to 100             30.1 s
//	0.2 s   A         saves done 100 and the position      0.3 s
//	0.3 s   A         claims it; jobs 101 to 150           30.3 s
//	0.4 s   A is killed
//	30.3 s  B         claims it; jobs 101 to 200           60.3 s
//
// B examines the jobs 101 to 150 again. They no longer match, or the operation on them has no effect,
// so they are counted as skipped.
//
// A tenant has few operations that run (slots.go). Each round of a replica works on one chunk of one
// operation of each tenant, so the operations of one tenant do not delay those of others.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
	"github.com/codesous/sous/storage/statestore"
)

// Selector finds jobs in the mirror. mirror/search.Searcher implements it.
type Selector interface {
	Jobs(ctx context.Context, tenant string, q *search.Jobs, cursor string, limit int) (*mirrorsearch.Result[api.Job], error)
	State() (*search.MirrorState, error)
}

// Operations creates, runs and lists bulk operations. It is safe for concurrent use, and any number of
// processes may have one over the same store.
type Operations struct {
	store    *storage.Store
	states   statestore.Store
	slots    statestore.Store
	broker   *queue.Broker
	selector Selector
	log      *zap.Logger
	metrics  *runnerMetrics
	running  atomic.Int64  // operations of all tenants that have not ended, when they were last read
	wake     chan struct{} // has a token when an operation was created here
}

// New returns the bulk operations in store on jobs of broker, which selector finds. log may be nil.
func New(store *storage.Store, broker *queue.Broker, selector Selector, log *zap.Logger) (*Operations, error) {
	if store == nil || broker == nil || selector == nil {
		return nil, errors.New("bulk: a store, a queue and a selector are required")
	}
	if log == nil {
		log = zap.NewNop()
	}
	return &Operations{
		store: store, states: store.States(index(store.Keys())), slots: store.States(), broker: broker, selector: selector, log: log,
		metrics: newRunnerMetrics(), wake: make(chan struct{}, 1),
	}, nil
}

// Preview returns how many jobs a call would select now, and the oldest of them. Errors: those of
// NewBulk.Validate and of searches.
func (o *Operations) Preview(ctx context.Context, tenant string, n *search.NewBulk) (*search.BulkPreview, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	b := search.Bulk{Operation: n.Operation, Selection: n.Selection, CreatedAtMS: o.store.NowMS()}
	found, err := o.count(ctx, tenant, &b)
	if err != nil {
		return nil, err
	}
	state, err := o.selector.State()
	if err != nil {
		return nil, err
	}
	return &search.BulkPreview{Matched: *found.Count, Sample: append([]api.Job{}, found.Items...), Mirror: *state}, nil
}

// count returns the first jobs of an operation and how many there are.
func (o *Operations) count(ctx context.Context, tenant string, b *search.Bulk) (*mirrorsearch.Result[api.Job], error) {
	q := b.Query()
	q.Count = true
	return o.selector.Jobs(ctx, tenant, &q, "", search.BulkSample)
}

// Create creates an operation, which replicas with a mirror run. With a key, a repeat of the call
// returns the operation of the first one, and created is false. Errors: those of Preview,
// CodeBulkLimit, CodeIdempotencyMismatch, CodeStoreUnavailable.
func (o *Operations) Create(ctx context.Context, tenant, key string, n *search.NewBulk) (b *search.Bulk, created bool, err error) {
	if err := n.Validate(); err != nil {
		return nil, false, err
	}
	r, err := newRecord(tenant, key, n)
	if err != nil {
		return nil, false, err
	}
	if key != "" {
		found, err := o.read(ctx, tenant, r.ID)
		if err != nil || found != nil {
			return o.repeat(ctx, r, found, err)
		}
	}
	r.CreatedAtMS, r.CreatedBy = o.store.NowMS(), event.ActorOf(ctx)
	r.UpdatedAtMS = r.CreatedAtMS
	found, err := o.count(ctx, tenant, &r.Bulk)
	if err != nil {
		return nil, false, err
	}
	r.Matched = *found.Count
	if err := o.takeSlot(ctx, tenant, r.ID); err != nil {
		return nil, false, err
	}
	// The mark comes first: a mark without a record is dropped, but a record without a mark would
	// never run.
	if err := o.mark(ctx, r); err != nil {
		return nil, false, err
	}
	fields, err := r.fields()
	if err != nil {
		return nil, false, err
	}
	made, err := o.states.CompareAndSet(ctx, o.key(tenant, r.ID), statestore.Fields{fieldRevision: nil}, fields)
	if err != nil {
		return nil, false, fmt.Errorf("create a bulk operation: %w", err)
	}
	if !made { // a call with the same key was faster
		found, err := o.read(ctx, tenant, r.ID)
		return o.repeat(ctx, r, found, err)
	}
	o.ring()
	return &r.Bulk, true, nil
}

// repeat answers a repeated creation with what the first one made.
func (o *Operations) repeat(ctx context.Context, asked, found *record, err error) (*search.Bulk, bool, error) {
	switch {
	case err != nil:
		return nil, false, err
	case found == nil:
		return nil, false, api.Errorf(api.CodeStoreConflict, "the bulk operation %s was removed meanwhile: try again", asked.ID)
	case found.Digest != asked.Digest:
		return nil, false, api.Errorf(api.CodeIdempotencyMismatch, "the Idempotency-Key was used for another bulk operation, %s", found.ID)
	case found.State == search.BulkRunning:
		err = o.mark(ctx, found)
	}
	return &found.Bulk, false, err
}

// mark makes an operation due, unless it is marked.
func (o *Operations) mark(ctx context.Context, r *record) error {
	err := o.store.Client().ZAddNX(ctx, storage.KeyBulkDue, redis.Z{Score: float64(o.store.NowMS()), Member: r.member()}).Err()
	return storage.Failure(ctx, "mark a bulk operation", err)
}

// ring wakes the runner of this process.
func (o *Operations) ring() {
	select {
	case o.wake <- struct{}{}:
	default: // it is awake
	}
}

// Get returns an operation. Errors: CodeBulkNotFound, CodeStoreUnavailable.
func (o *Operations) Get(ctx context.Context, tenant, id string) (*search.Bulk, error) {
	r, err := o.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return &r.Bulk, nil
}

func (o *Operations) find(ctx context.Context, tenant, id string) (*record, error) {
	r, err := o.read(ctx, tenant, id)
	if err == nil && r == nil {
		return nil, NotFound(id)
	}
	return r, err
}

// NotFound returns the error with CodeBulkNotFound.
func NotFound(id string) error {
	return api.Errorf(api.CodeBulkNotFound, "bulk operation %s does not exist", id)
}

// maxTries bounds the attempts of a change that conflicts with the progress of the operation.
const maxTries = 100

// Cancel ends an operation after the chunk in progress, and returns it. Jobs that were changed stay so.
// A repeat succeeds. Errors: CodeBulkNotFound, CodeBulkEnded, CodeStoreConflict, CodeStoreUnavailable.
func (o *Operations) Cancel(ctx context.Context, tenant, id string) (*search.Bulk, error) {
	for range maxTries {
		r, err := o.find(ctx, tenant, id)
		if err != nil {
			return nil, err
		}
		if r.State == search.BulkCancelled {
			return &r.Bulk, nil
		}
		if r.State != search.BulkRunning {
			return nil, api.Errorf(api.CodeBulkEnded, "bulk operation %s is %s: it cannot be cancelled", id, r.State)
		}
		after := *r
		after.State, after.EndedAtMS = search.BulkCancelled, o.store.NowMS()
		done, err := o.write(ctx, r, &after)
		if err != nil {
			return nil, err
		}
		if done {
			return &after.Bulk, nil
		}
	}
	return nil, api.Errorf(api.CodeStoreConflict, "bulk operation %s keeps changing: try again", id)
}

// List returns a page of a tenant's operations, newest first, behind the position after. namespace
// selects those of one namespace, "" all. next is "" at the end. Errors: CodeValidationCursor,
// CodeStoreUnavailable.
func (o *Operations) List(ctx context.Context, tenant, namespace, after string, limit int) (items []search.Bulk, next string, err error) {
	from, err := parsePosition(after)
	if err != nil {
		return nil, "", err
	}
	limit = storage.PageLimit(limit)
	filter := statestore.Filter{Field: fieldOrder, Op: statestore.Greater, Value: strconv.AppendInt(nil, from.order-1, 10)}
	for entry, err := range o.states.Scan(ctx, o.store.Keys().Bulk(tenant, partRecord), &filter) {
		if err != nil {
			return nil, "", fmt.Errorf("list bulk operations: %w", err)
		}
		r, err := parse(tenant, entry.Record)
		if err != nil {
			return nil, "", err
		}
		at := position{-r.CreatedAtMS, r.ID}
		if !from.before(at) || namespace != "" && r.Selection.Namespace != namespace {
			continue
		}
		if len(items) == limit {
			return items, next, nil
		}
		items, next = append(items, r.Bulk), at.String()
	}
	return items, "", nil
}
