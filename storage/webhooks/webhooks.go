// Package webhooks keeps the webhooks of tenants, their signing secrets, and their deliveries. The
// webhooks of a tenant are one hash, which webhook.MaxWebhooks limits. Each has an id, under which
// its deliveries are kept, so that a webhook that is created again inherits none:
//
//	cs:webhook:t_acme01:records          mail → {"id":"7d…","url":"https://…","secrets":[…],…}
//	cs:webhook:t_acme01:7d…:state        position 1760000001000-0.2, last_status 200, …
//	cs:webhook:t_acme01:7d…:pending      "jobs/j1 1760000001000-0.0" → {"event":{…},"attempts":1}
//	cs:webhook:t_acme01:7d…:due          "jobs/j1 1760000001000-0.0" at 1760000006000
//	cs:webhook:t_acme01:7d…:log          1760000001200-0 {"event":{…},"attempt":1,…}
//
// The position is behind the last event for which there is a delivery, or that the webhook does not
// select. Deliveries are added before the position moves, and recorded in the log before they are
// removed: whatever is interrupted is repeated, so that each event is delivered at least once.
//
// Files: webhooks.go has the records, signing.go their secrets, deliveries.go the deliveries, log.go
// the attempts, and lease.go the lease of the replica that delivers. Package scheduler/webhooks
// delivers.
package webhooks

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
	"github.com/codesous/sous/storage/secrets"
)

// The scripts of webhooks, by the names of their files in package lua.
const (
	scriptPut    = "webhook_put.lua"
	scriptTake   = "webhook_take.lua"
	scriptSettle = "webhook_settle.lua"
	scriptLease  = "webhook_lease.lua"
)

// The fields of the state of a webhook.
const (
	fieldPosition     = "position"
	fieldLastStatus   = "last_status"
	fieldLastError    = "last_error"
	fieldLastAt       = "last_delivery_at_ms"
	fieldFailingSince = "failing_since_ms"
)

// Record is a webhook in its stored form.
type Record struct {
	ID string `json:"id"`
	webhook.Config
	Secrets     []secret `json:"secrets"` // the current one first
	Revision    int64    `json:"revision"`
	CreatedAtMS int64    `json:"created_at_ms"`
	UpdatedAtMS int64    `json:"updated_at_ms"`
	Name        string   `json:"-"`
}

// Condition guards a write.
type Condition struct {
	IfMatch *int64 // the revision that the webhook must have; nil accepts any
	IfNew   bool   // the webhook must not exist
}

// check returns CodeWebhookExists, CodeWebhookNotFound or CodePreconditionFailed unless held, nil for
// a missing webhook, meets the condition.
func (c Condition) check(name string, held *Record) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodeWebhookExists, "webhook %q exists", name)
	case c.IfMatch != nil && held == nil:
		return notFound(name)
	case c.IfMatch != nil && held.Revision != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "webhook %q is at revision %d", name, held.Revision)
	}
	return nil
}

func notFound(name string) error {
	return api.Errorf(api.CodeWebhookNotFound, "webhook %q does not exist", name)
}

// Repository keeps the webhooks. It is safe for concurrent use, by any number of processes.
type Repository struct {
	s       *storage.Store
	secrets *secrets.Secrets
	events  *events.Log
}

// New returns the webhooks in s, whose secrets are sealed by keys.
func New(s *storage.Store, keys *secrets.Secrets) *Repository {
	return &Repository{s, keys, events.New(s)}
}

// Put creates a webhook, or replaces its configuration; created reports which. A new one has a
// secret, in out.Secret. It receives the events that follow. A webhook that is replaced keeps its
// secrets and its position. CodeWebhookExists, CodeWebhookNotFound and CodePreconditionFailed for the
// condition; CodeWebhookLimit, CodeSecretKeyMissing.
func (r *Repository) Put(ctx context.Context, tenant, name string, c webhook.Config, on Condition) (out webhook.Webhook, created bool, err error) {
	out, err = r.write(ctx, tenant, name, on, func(held *Record) (next Record, text string, err error) {
		created = held == nil
		if !created {
			next = *held
			next.Config = c
			return next, "", nil
		}
		next = Record{ID: uuid.NewString(), Config: c}
		text, err = r.addSecret(tenant, &next)
		return next, text, err
	})
	return out, created, err
}

// Update changes a webhook by change, which is called again if another caller changes the webhook
// meanwhile. CodeWebhookNotFound, CodePreconditionFailed, and the errors of change.
func (r *Repository) Update(ctx context.Context, tenant, name string, ifMatch *int64, change func(*webhook.Config) error) (webhook.Webhook, error) {
	return r.write(ctx, tenant, name, Condition{IfMatch: ifMatch}, func(held *Record) (next Record, text string, err error) {
		if held == nil {
			return next, "", notFound(name)
		}
		next = *held
		next.Events = slices.Clone(held.Events)
		return next, "", change(&next.Config)
	})
}

// write replaces the webhook by what change makes of it, nil for a missing one, if it meets the
// condition. text is a new secret, "" for none. A webhook that stays the same is not written.
func (r *Repository) write(ctx context.Context, tenant, name string, on Condition, change func(*Record) (next Record, text string, err error)) (out webhook.Webhook, err error) {
	if err := r.s.Client().SAdd(ctx, r.s.Keys().WebhookTenants(), tenant).Err(); err != nil {
		return out, storage.Failure(ctx, "register webhook", err)
	}
	var written Record
	text := ""
	err = storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.read(ctx, tenant, name)
		if err == nil {
			err = on.check(name, held)
		}
		if err != nil {
			return err
		}
		written, text, err = change(held)
		if err != nil {
			return err
		}
		if held != nil && text == "" && held.Same(&written.Config) {
			return nil
		}
		now := r.s.NowMS()
		written.Revision, written.UpdatedAtMS = written.Revision+1, now
		if held == nil {
			written.CreatedAtMS = now
		}
		if written.Enabled && (held == nil || !held.Enabled) {
			if err := r.restart(ctx, tenant, written.ID); err != nil {
				return err
			}
		}
		return r.put(ctx, tenant, name, raw, &written)
	})
	if err != nil {
		return out, err
	}
	if !written.Enabled {
		_ = r.s.Client().Del(ctx, r.s.Keys().Webhook(tenant, written.ID).Due(), r.s.Keys().Webhook(tenant, written.ID).Pending()).Err() // restart removes what stays
	}
	r.Notify(ctx, tenant)
	written.Name = name
	states, err := r.states(ctx, tenant, []Record{written})
	if err != nil {
		return out, err
	}
	out = written.webhook(states[0], r.s.NowMS())
	out.Secret = text
	return out, nil
}

// put stores a record if the stored text still is before. CodeStoreConflict, CodeWebhookLimit.
func (r *Repository) put(ctx context.Context, tenant, name, before string, next *Record) error {
	raw, err := storage.Encode(next)
	if err != nil {
		return err
	}
	_, err = r.s.Script(ctx, scriptPut, []string{r.s.Keys().Webhooks(tenant)}, before, raw, name, webhook.MaxWebhooks)
	return err
}

// restart has a webhook that is about to be enabled begin with the next event: deliveries of the
// time before are dropped.
func (r *Repository) restart(ctx context.Context, tenant, id string) error {
	end, err := r.events.End(ctx, tenant)
	if err != nil {
		return err
	}
	if end == "" {
		end = events.Since(1)
	}
	k := r.s.Keys().Webhook(tenant, id)
	pipe := r.s.Client().Pipeline()
	pipe.Del(ctx, k.Due(), k.Pending())
	pipe.HDel(ctx, k.State(), fieldFailingSince)
	pipe.HSet(ctx, k.State(), fieldPosition, string(end))
	_, err = pipe.Exec(ctx)
	return storage.Failure(ctx, "start webhook", err)
}

// Notify tells the replica that delivers that a webhook changed, or has a delivery. Best effort:
// replicas also look every few seconds.
func (r *Repository) Notify(ctx context.Context, tenant string) {
	_ = r.s.PublishChange(ctx, storage.Change{Kind: storage.ChangeWebhook, Tenant: tenant})
}

// read returns a webhook, nil for none, and its stored text.
func (r *Repository) read(ctx context.Context, tenant, name string) (*Record, string, error) {
	raw, err := r.s.Client().HGet(ctx, r.s.Keys().Webhooks(tenant), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read webhook", err)
	}
	rec, err := storage.Decode[Record](raw)
	rec.Name = name
	return &rec, raw, err
}

// Get returns a webhook with its status. CodeWebhookNotFound.
func (r *Repository) Get(ctx context.Context, tenant, name string) (webhook.Webhook, error) {
	rec, _, err := r.read(ctx, tenant, name)
	if err == nil && rec == nil {
		err = notFound(name)
	}
	if err != nil {
		return webhook.Webhook{}, err
	}
	states, err := r.states(ctx, tenant, []Record{*rec})
	if err != nil {
		return webhook.Webhook{}, err
	}
	return rec.webhook(states[0], r.s.NowMS()), nil
}

// All returns the webhooks of a tenant by name.
func (r *Repository) All(ctx context.Context, tenant string) ([]Record, error) {
	raws, err := r.s.Client().HGetAll(ctx, r.s.Keys().Webhooks(tenant)).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "list webhooks", err)
	}
	out := make([]Record, 0, len(raws))
	for _, name := range slices.Sorted(maps.Keys(raws)) {
		rec, err := storage.Decode[Record](raws[name])
		if err != nil {
			return nil, err
		}
		rec.Name = name
		out = append(out, rec)
	}
	return out, nil
}

// List returns a page of a tenant's webhooks by name, after the name after. next is "" at the end.
func (r *Repository) List(ctx context.Context, tenant, after string, limit int) (items []webhook.Webhook, next string, err error) {
	all, err := r.All(ctx, tenant)
	if err != nil {
		return nil, "", err
	}
	all = slices.DeleteFunc(all, func(rec Record) bool { return rec.Name <= after })
	limit = storage.PageLimit(limit)
	if len(all) > limit {
		all, next = all[:limit], all[limit-1].Name
	}
	states, err := r.states(ctx, tenant, all)
	if err != nil {
		return nil, "", err
	}
	items = make([]webhook.Webhook, len(all))
	for i := range all {
		items[i] = all[i].webhook(states[i], r.s.NowMS())
	}
	return items, next, nil
}

// Delete removes a webhook with its deliveries and its log; with ifMatch, only if that is its
// revision. CodeWebhookNotFound, CodePreconditionFailed.
func (r *Repository) Delete(ctx context.Context, tenant, name string, ifMatch *int64) error {
	var removed *Record
	err := storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.read(ctx, tenant, name)
		if err != nil {
			return err
		}
		if held == nil {
			return notFound(name)
		}
		if err := (Condition{IfMatch: ifMatch}).check(name, held); err != nil {
			return err
		}
		// The deliveries first: a crash in between leaves a webhook without them, not deliveries
		// that no later call finds.
		removed = held
		k := r.s.Keys().Webhook(tenant, held.ID)
		if err := r.s.Client().Del(ctx, k.Due(), k.Pending(), k.Log()).Err(); err != nil {
			return storage.Failure(ctx, "delete webhook", err)
		}
		_, err = r.s.Script(ctx, scriptPut, []string{r.s.Keys().Webhooks(tenant)}, raw, "", name, webhook.MaxWebhooks)
		return err
	})
	if err != nil {
		return err
	}
	k := r.s.Keys().Webhook(tenant, removed.ID)
	r.Notify(ctx, tenant)
	return storage.Failure(ctx, "delete webhook", r.s.Client().Del(ctx, k.Due(), k.Pending(), k.State(), k.Log()).Err())
}

// state is the status of a webhook in its stored form.
type state struct {
	fields  map[string]string
	pending int64
}

func (s *state) number(field string) int64 {
	n, _ := strconv.ParseInt(s.fields[field], 10, 64) // absent is 0
	return n
}

// states returns the states of webhooks of a tenant.
func (r *Repository) states(ctx context.Context, tenant string, of []Record) ([]state, error) {
	out := make([]state, len(of))
	if len(of) == 0 {
		return out, nil
	}
	pipe := r.s.Client().Pipeline()
	fields, counts := make([]*redis.MapStringStringCmd, len(of)), make([]*redis.IntCmd, len(of))
	for i := range of {
		k := r.s.Keys().Webhook(tenant, of[i].ID)
		fields[i], counts[i] = pipe.HGetAll(ctx, k.State()), pipe.ZCard(ctx, k.Due())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read webhooks", err)
	}
	for i := range of {
		out[i] = state{fields[i].Val(), counts[i].Val()}
	}
	return out, nil
}

// webhook returns the webhook as the API shows it at now, in milliseconds since 1970.
func (rec *Record) webhook(s state, now int64) webhook.Webhook {
	out := webhook.Webhook{
		Name: rec.Name, Config: rec.Config, LastStatus: int(s.number(fieldLastStatus)), LastError: s.fields[fieldLastError],
		LastDeliveryAtMS: s.number(fieldLastAt), FailingSinceMS: s.number(fieldFailingSince), Pending: s.pending,
		Revision: rec.Revision, CreatedAtMS: rec.CreatedAtMS, UpdatedAtMS: rec.UpdatedAtMS,
	}
	if len(rec.Secrets) > 1 && rec.Secrets[1].UntilMS > now {
		out.PreviousSecretUntilMS = rec.Secrets[1].UntilMS
	}
	return out
}
