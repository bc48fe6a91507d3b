package webhooks

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/events"
)

// testPrefix begins the ids of the events of tests, which are in no log.
const testPrefix = "test-"

// Delivery is a delivery that has not ended, in its stored form.
type Delivery struct {
	Event    event.Event `json:"event"`
	Attempts int         `json:"attempts"`       // that have failed
	Once     bool        `json:"once,omitempty"` // it is not repeated: a test
	// Since is when the delivery was added, in milliseconds since 1970.
	Since int64 `json:"since"`
}

// Member names a delivery: its subject and the id of its event, which has no blank.
type Member string

// MemberOf returns the name of the delivery of an event.
func MemberOf(e *event.Event) Member { return Member(e.Subject + " " + e.ID) }

// Parts returns the subject and the id of the event.
func (m Member) Parts() (subject, id string) {
	at := strings.LastIndexByte(string(m), ' ')
	if at < 0 {
		return "", string(m)
	}
	return string(m[:at]), string(m[at+1:])
}

// Before reports whether the event of m is before that of other in the log.
func (m Member) Before(other Member) bool {
	_, a := m.Parts()
	_, b := other.Parts()
	order := events.Position(a).Compare(events.Position(b))
	return order < 0 || order == 0 && a < b
}

// Status is the state of a webhook, as far as the replica that delivers needs it.
type Status struct {
	Position     events.Position
	FailingSince int64 // 0 while it does not fail
	Pending      int64
}

// Statuses returns the states of webhooks of a tenant.
func (r *Repository) Statuses(ctx context.Context, tenant string, of []Record) ([]Status, error) {
	states, err := r.states(ctx, tenant, of)
	out := make([]Status, len(states))
	for i := range states {
		out[i] = Status{events.Position(states[i].fields[fieldPosition]), states[i].number(fieldFailingSince), states[i].pending}
	}
	return out, err
}

// Take adds deliveries for events, due now, and moves the webhook's position from from to to. moved is
// false, and nothing is written, if the position is another by now: another replica delivers.
func (r *Repository) Take(ctx context.Context, tenant, id string, selected []event.Event, from, to events.Position) (moved bool, err error) {
	k, now := r.s.Keys().Webhook(tenant, id), r.s.NowMS()
	args := make([]any, 0, 3+2*len(selected))
	args = append(args, string(from), string(to), now)
	for i := range selected {
		raw, err := storage.Encode(Delivery{Event: selected[i], Since: now})
		if err != nil {
			return false, err
		}
		args = append(args, string(MemberOf(&selected[i])), raw)
	}
	reply, err := r.s.Script(ctx, scriptTake, []string{k.State(), k.Pending(), k.Due()}, args...)
	n, _ := reply.(int64)
	return n == 1, err
}

// Waiting is the time of the next attempt of a delivery, in milliseconds since 1970.
type Waiting struct {
	Member Member
	AtMS   int64
}

// Due returns the deliveries of webhooks of a tenant that have not ended, those of each by the time
// of their next attempt: webhook.MaxPending bounds them, more or less.
func (r *Repository) Due(ctx context.Context, tenant string, of []Record) ([][]Waiting, error) {
	pipe := r.s.Client().Pipeline()
	replies := make([]*redis.ZSliceCmd, len(of))
	for i := range of {
		replies[i] = pipe.ZRangeWithScores(ctx, r.s.Keys().Webhook(tenant, of[i].ID).Due(), 0, -1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "read deliveries", err)
	}
	out := make([][]Waiting, len(of))
	for i := range of {
		for _, z := range replies[i].Val() {
			member, _ := z.Member.(string)
			out[i] = append(out[i], Waiting{Member(member), int64(z.Score)})
		}
	}
	return out, nil
}

// Pending returns a delivery and its stored text. found is false for one that ended: what a crash left
// of it in the set of due deliveries is removed.
func (r *Repository) Pending(ctx context.Context, tenant, id string, m Member) (d Delivery, raw string, found bool, err error) {
	k := r.s.Keys().Webhook(tenant, id)
	raw, err = r.s.Client().HGet(ctx, k.Pending(), string(m)).Result()
	if errors.Is(err, redis.Nil) {
		return d, "", false, r.removeTime(ctx, k, m)
	}
	if err != nil {
		return d, "", false, storage.Failure(ctx, "read delivery", err)
	}
	d, err = storage.Decode[Delivery](raw)
	return d, raw, err == nil, err
}

// removeTime removes a delivery that ended from the set of due deliveries. One that is added at the
// same time is due now.
func (r *Repository) removeTime(ctx context.Context, k storage.WebhookKeys, m Member) error {
	pipe := r.s.Client().Pipeline()
	pipe.ZRem(ctx, k.Due(), string(m))
	added := pipe.HExists(ctx, k.Pending(), string(m))
	_, err := pipe.Exec(ctx)
	if err == nil && added.Val() {
		err = r.s.Client().ZAdd(ctx, k.Due(), redis.Z{Score: float64(r.s.NowMS()), Member: string(m)}).Err()
	}
	return storage.Failure(ctx, "remove delivery", err)
}

// Settle records an attempt of the delivery that was read as raw. Its NextAtMS is 0 if the delivery
// ended. failingSince is that of the webhook afterwards. A delivery that another replica has settled,
// or that was dropped, stays as it is.
func (r *Repository) Settle(ctx context.Context, tenant, id string, d *Delivery, raw string, attempt *webhook.Delivery, failingSince int64) error {
	next := ""
	if attempt.NextAtMS > 0 {
		later := *d
		later.Attempts++
		var err error
		next, err = storage.Encode(&later)
		if err != nil {
			return err
		}
	}
	text, err := storage.Encode(attempt)
	if err != nil {
		return err
	}
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	k := r.s.Keys().Webhook(tenant, id)
	_, err = r.s.ScriptThen(ctx, scriptSettle, []string{k.Pending(), k.Due(), k.Log(), k.State()}, []any{
		string(MemberOf(&d.Event)), raw, next, attempt.NextAtMS, text,
		fieldLastStatus, number(int64(attempt.Status)), fieldLastError, attempt.Error,
		fieldLastAt, number(attempt.AtMS), fieldFailingSince, number(failingSince),
	}, func(pipe redis.Pipeliner) {
		pipe.XTrimMaxLen(ctx, k.Log(), webhook.MaxDeliveries)
		pipe.XTrimMinID(ctx, k.Log(), strconv.FormatInt(max(0, attempt.AtMS-webhook.DeliveryRetentionMS), 10))
		pipe.PExpire(ctx, k.Log(), webhook.DeliveryRetentionMS*time.Millisecond)
	})
	return err
}

// Test adds a delivery of an event webhook.test, which is tried once. CodeWebhookNotFound,
// CodeWebhookDisabled, CodeCapacityLimit.
func (r *Repository) Test(ctx context.Context, tenant, name string) (webhook.QueuedDelivery, error) {
	now := r.s.Now()
	return r.add(ctx, tenant, name, &Delivery{Once: true, Event: event.Event{
		SpecVersion: "1.0", ID: testPrefix + uuid.NewString(), Source: "/v1/tenants/" + tenant, Type: event.WebhookTest,
		Subject: "webhooks/" + name, Time: now.UTC().Format("2006-01-02T15:04:05.000Z"),
	}})
}

// Redeliver adds a delivery of the event of an attempt in the log, as if it had not been tried, with
// the same webhook-id. CodeWebhookNotFound, CodeDeliveryNotFound, CodeWebhookDisabled,
// CodeCapacityLimit.
func (r *Repository) Redeliver(ctx context.Context, tenant, name, entry string) (webhook.QueuedDelivery, error) {
	found, err := r.Attempt(ctx, tenant, name, entry)
	if err != nil {
		return webhook.QueuedDelivery{}, err
	}
	return r.add(ctx, tenant, name, &Delivery{Event: found.Event, Once: found.Event.Type == event.WebhookTest})
}

// add adds a delivery that is due now.
func (r *Repository) add(ctx context.Context, tenant, name string, d *Delivery) (out webhook.QueuedDelivery, err error) {
	rec, _, err := r.read(ctx, tenant, name)
	if err != nil {
		return out, err
	}
	switch {
	case rec == nil:
		return out, notFound(name)
	case !rec.Enabled:
		return out, api.Errorf(api.CodeWebhookDisabled, "webhook %q is disabled: enable it first", name)
	}
	k := r.s.Keys().Webhook(tenant, rec.ID)
	n, err := r.s.Client().ZCard(ctx, k.Due()).Result()
	if err != nil {
		return out, storage.Failure(ctx, "add delivery", err)
	}
	if n >= webhook.MaxPending {
		return out, api.Errorf(api.CodeCapacityLimit, "limit of %d waiting deliveries of webhook %q reached: try again when some have ended", webhook.MaxPending, name)
	}
	d.Since = r.s.NowMS()
	raw, err := storage.Encode(d)
	if err != nil {
		return out, err
	}
	member := string(MemberOf(&d.Event))
	pipe := r.s.Client().Pipeline()
	pipe.HSet(ctx, k.Pending(), member, raw)
	pipe.ZAdd(ctx, k.Due(), redis.Z{Score: float64(d.Since), Member: member})
	if _, err := pipe.Exec(ctx); err != nil {
		return out, storage.Failure(ctx, "add delivery", err)
	}
	r.Notify(ctx, tenant)
	return webhook.QueuedDelivery{EventID: d.Event.ID}, nil
}
