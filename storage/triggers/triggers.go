// Package triggers keeps the queue triggers: which queue invokes which function, and the places
// in which the activations of a trigger with a concurrency limit run.
package triggers

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/api/trigger"
	"github.com/codesous/sous/storage"
)

// scriptPut is the name of its file in package lua.
const scriptPut = "trigger_put.lua"

// Record is a queue trigger's record. Its activations run on behalf of the principal that
// created or last changed it.
type Record struct {
	trigger.QueueTrigger
	Principal api.Principal `json:"principal"`
	Access    api.Access    `json:"access"`
}

// Found is a trigger with the names that locate it.
type Found struct {
	Tenant, Namespace string
	Record
}

// Repository keeps the queue triggers, those of a namespace in one hash, which
// trigger.MaxQueueTriggers limits. It is safe for concurrent use, by any number of processes.
type Repository struct{ s *storage.Store }

// New returns the queue triggers in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// Put creates or replaces the trigger of the queue t.Queue and sets its revision and times;
// nowMS is milliseconds since 1970. A trigger that does the same already stays as it is. With
// ifMatch, the trigger must exist at that revision. The namespace is registered before, so that
// All finds the trigger. CodeTriggerExists if the queue triggers another function,
// CodeTriggerLimit, CodePreconditionFailed, CodeTenantQuota.
func (r *Repository) Put(ctx context.Context, tenant, namespace string, t Record, ifMatch *int64, nowMS int64) (out trigger.QueueTrigger, created bool, err error) {
	if err := storage.NewTenants(r.s).RegisterNamespace(ctx, tenant, namespace); err != nil {
		return out, false, err
	}
	if err := r.s.Client().SAdd(ctx, r.s.Keys().TriggerNamespaces(), tenant+"/"+namespace).Err(); err != nil {
		return out, false, storage.Failure(ctx, "register queue trigger", err)
	}
	unchanged := false
	err = storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.read(ctx, tenant, namespace, t.Queue)
		if err != nil {
			return err
		}
		created = held == nil
		switch {
		case created && ifMatch != nil:
			return notFound(t.Queue)
		case created:
			t.Revision, t.CreatedAtMS, t.UpdatedAtMS = 1, nowMS, nowMS
		case matches(held, ifMatch) != nil:
			return matches(held, ifMatch)
		case held.Function != t.Function:
			return api.Errorf(api.CodeTriggerExists, "queue %q triggers the function %q; delete that trigger first", t.Queue, held.Function)
		case held.Same(&t.QueueTrigger):
			out, unchanged = held.QueueTrigger, true
			return nil
		default:
			t.Revision, t.CreatedAtMS, t.UpdatedAtMS = held.Revision+1, held.CreatedAtMS, nowMS
		}
		out = t.QueueTrigger
		after, err := storage.Encode(&t)
		if err != nil {
			return err
		}
		write := func() error { return r.put(ctx, tenant, namespace, t.Queue, raw, after) }
		if !created {
			return write()
		}
		return r.s.Taking(ctx, tenant, write, storage.One(quota.Triggers))
	})
	if unchanged {
		return out, false, err
	}
	return out, created, r.notify(ctx, tenant, namespace, err)
}

// notify publishes a change of the namespace's triggers, if err is nil, and returns err.
func (r *Repository) notify(ctx context.Context, tenant, namespace string, err error) error {
	if err == nil {
		// Best effort: the replicas read all triggers every few seconds.
		_ = r.s.PublishChange(ctx, storage.Change{Kind: storage.ChangeTrigger, Tenant: tenant, Namespace: namespace})
	}
	return err
}

// matches returns CodePreconditionFailed unless t is at the revision *ifMatch; nil accepts any.
func matches(t *Record, ifMatch *int64) error {
	if ifMatch != nil && *ifMatch != t.Revision {
		return api.Errorf(api.CodePreconditionFailed, "the trigger of queue %q is at revision %d", t.Queue, t.Revision)
	}
	return nil
}

// put writes the text after if the stored one still is before.
func (r *Repository) put(ctx context.Context, tenant, namespace, queue, before, after string) error {
	_, err := r.s.Script(ctx, scriptPut, []string{r.s.Keys().Triggers(tenant, namespace)}, before, after, queue, trigger.MaxQueueTriggers)
	return err
}

// Get returns the trigger of a queue. CodeTriggerNotFound.
func (r *Repository) Get(ctx context.Context, tenant, namespace, queue string) (*Record, error) {
	t, _, err := r.read(ctx, tenant, namespace, queue)
	if err == nil && t == nil {
		err = notFound(queue)
	}
	return t, err
}

// read returns a trigger and the stored text, which a later write is compared with; nil if
// there is none.
func (r *Repository) read(ctx context.Context, tenant, namespace, queue string) (*Record, string, error) {
	raw, err := r.s.Client().HGet(ctx, r.s.Keys().Triggers(tenant, namespace), queue).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read queue trigger", err)
	}
	t, err := storage.Decode[Record](raw)
	return &t, raw, err
}

func notFound(queue string) error {
	return api.Errorf(api.CodeTriggerNotFound, "queue %q has no trigger", queue)
}

// Delete removes the trigger of a queue; with ifMatch, only if that is its revision.
// CodeTriggerNotFound, CodePreconditionFailed.
func (r *Repository) Delete(ctx context.Context, tenant, namespace, queue string, ifMatch *int64) error {
	err := storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.read(ctx, tenant, namespace, queue)
		if err == nil && held == nil {
			err = notFound(queue)
		}
		if err == nil {
			err = matches(held, ifMatch)
		}
		if err != nil {
			return err
		}
		return r.put(ctx, tenant, namespace, queue, raw, "")
	})
	if err == nil {
		r.s.Returned(ctx, tenant, storage.One(quota.Triggers))
	}
	return r.notify(ctx, tenant, namespace, err)
}

// List returns a page of a namespace's triggers by queue, after the queue after; with function,
// only those of that function. next is "" at the end.
func (r *Repository) List(ctx context.Context, tenant, namespace, function, after string, limit int) (items []trigger.QueueTrigger, next string, err error) {
	found, err := r.InNamespace(ctx, tenant, namespace)
	if err != nil {
		return nil, "", err
	}
	limit = storage.PageLimit(limit)
	items = []trigger.QueueTrigger{}
	for i := range found {
		t := &found[i].QueueTrigger
		if t.Queue <= after || function != "" && t.Function != function {
			continue
		}
		if len(items) == limit {
			return items, items[limit-1].Queue, nil
		}
		items = append(items, *t)
	}
	return items, "", nil
}

// InNamespace returns the triggers of a namespace by queue, without those that cannot be read.
func (r *Repository) InNamespace(ctx context.Context, tenant, namespace string) ([]Found, error) {
	all, err := r.s.Client().HGetAll(ctx, r.s.Keys().Triggers(tenant, namespace)).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "list queue triggers", err)
	}
	out := make([]Found, 0, len(all))
	for _, raw := range all {
		t, err := storage.Decode[Record](raw)
		if err != nil { // of a newer release: it must not hide the others
			continue
		}
		out = append(out, Found{tenant, namespace, t})
	}
	slices.SortFunc(out, func(a, b Found) int { return strings.Compare(a.Queue, b.Queue) })
	return out, nil
}

// All reads the triggers of every tenant, with one command for each namespace that has ever had
// one. It is not one moment: a trigger that is created meanwhile may be missing.
func (r *Repository) All(ctx context.Context) ([]Found, error) {
	var out []Found
	for at, err := range r.s.Places(ctx, r.s.Keys().TriggerNamespaces()) {
		if err != nil {
			return nil, err
		}
		found, err := r.InNamespace(ctx, at.Tenant, at.Namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}
