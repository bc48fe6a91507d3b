package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// The fields of a job's hash. spec never changes; run changes with every step;
// the others are there only where they say something.
const (
	fieldSpec       = "spec"
	fieldRun        = "run"
	fieldAfter      = "after" // something follows the job's end
	fieldProgress   = "progress"
	fieldCheckpoint = "checkpoint"
	fieldResult     = "result"
	fieldHoldReason = "hold_reason"
	fieldDeadReason = "dead_reason"
)

// encodeSpec writes a spec as its header in JSON, a line break, and the payload
// as it was sent: most readers need only one of the two.
func encodeSpec(s *api.JobSpec) (string, error) {
	header := *s
	header.Payload = nil
	raw, err := api.EncodeJSON(header)
	if err != nil {
		return "", fmt.Errorf("queue: encode a job: %w", err)
	}
	return string(raw) + "\n" + string(s.Payload), nil
}

// specBegin is how the spec of every job of q begins: what JobSpec encodes first.
func specBegin(q queueKey) string {
	return `{"namespace":"` + q.namespace + `","queue":"` + q.queue + `",`
}

func decodeSpec(text string) (*api.JobSpec, error) {
	header, payload, ok := strings.Cut(text, "\n")
	s := &api.JobSpec{}
	if !ok {
		return nil, errors.New("queue: a stored job has no payload")
	}
	if err := json.Unmarshal([]byte(header), s); err != nil {
		return nil, fmt.Errorf("queue: a stored job cannot be read: %w", err)
	}
	s.Payload = json.RawMessage(payload)
	return s, nil
}

// brief is what settling a job needs to know of its spec. It holds for leases up
// to the one that follows epoch: moving a job, which makes its epoch grow, comes
// before any later one.
type brief struct {
	epoch            int64
	namespace, queue string
	unique           string
	schema           json.RawMessage
}

func briefOf(s *api.JobSpec, epoch int64) *brief {
	return &brief{epoch, s.Namespace, s.Queue, s.UniqueKey, s.ResultSchema}
}

// record is a job as it is stored.
type record struct {
	id   string
	text string // of run, for compare-and-set
	run  run
	spec *api.JobSpec
	more map[string]string
}

func (r *record) key(tenant string) queueKey {
	return queueKey{tenant, r.spec.Namespace, r.spec.Queue}
}

// recordFields are read where a job is to be decided on; all of them where it is shown.
var (
	recordFields = []string{fieldRun, fieldSpec, fieldAfter}
	allFields    = []string{fieldRun, fieldSpec, fieldAfter, fieldProgress, fieldCheckpoint, fieldResult, fieldHoldReason, fieldDeadReason}
)

// load reads jobs; those that do not exist are nil.
func (b *Broker) load(ctx context.Context, tenant string, ids []string, fields []string) ([]*record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := b.store.JobKeys(tenant)
	pipe := b.rdb.Pipeline()
	replies := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		replies[i] = pipe.HMGet(ctx, keys.Meta(id), fields...)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	out := make([]*record, len(ids))
	for i, reply := range replies {
		held := map[string]string{}
		for k, v := range reply.Val() {
			if s, ok := v.(string); ok {
				held[fields[k]] = s
			}
		}
		var err error
		if out[i], err = newRecord(ids[i], held); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// newRecord reads a job's fields; nil where it has no run, and so does not exist.
func newRecord(id string, fields map[string]string) (r *record, err error) {
	r = &record{id: id, text: fields[fieldRun], more: fields}
	if r.text == "" {
		return nil, nil //nolint:nilnil // documented: no job
	}
	if r.run, err = parseRun(r.text); err != nil {
		return nil, err
	}
	r.spec, err = decodeSpec(fields[fieldSpec])
	return r, err
}

// statesOf reads where jobs stand, "" where there is none, and nothing else of them:
// their payloads may be large.
func (b *Broker) statesOf(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	keys := b.store.JobKeys(tenant)
	pipe := b.rdb.Pipeline()
	replies := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		replies[i] = pipe.HMGet(ctx, keys.Meta(id), fieldRun)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	out := make([]api.JobState, len(ids))
	for i, reply := range replies {
		if text := texts(reply.Val())[0]; text != "" {
			now, err := parseRun(text)
			if err != nil {
				return nil, err
			}
			out[i] = now.state
		}
	}
	return out, nil
}

// find reads one job, all its fields. CodeJobNotFound.
func (b *Broker) find(ctx context.Context, tenant, id string) (*record, error) {
	held, err := b.states.Get(ctx, b.store.JobKeys(tenant).Meta(id))
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, jobNotFound(id)
	}
	fields := make(map[string]string, len(held.Fields))
	for name, value := range held.Fields {
		fields[name] = string(value)
	}
	r, err := newRecord(id, fields)
	if err == nil && r == nil {
		err = jobNotFound(id)
	}
	return r, err
}

func jobNotFound(id string) error {
	return api.Errorf(api.CodeJobNotFound, "job %s does not exist", id)
}

// remember keeps what settling a job needs to know. A derived id may come back after
// its job was deleted, by another replica and in another queue, with epochs that
// begin again: of those nothing is kept.
func (b *Broker) remember(key jobKey, known *brief) {
	if !api.IsDerivedJobID(key.id) {
		b.briefs.Set(key, known)
	}
}

// briefsOf knows the queues of jobs under leases of the given epochs, from memory
// or from the store. Jobs that do not exist are left out.
func (b *Broker) briefsOf(ctx context.Context, tenant string, ids []string, epochs []int64) (map[string]*brief, error) {
	out := make(map[string]*brief, len(ids))
	var missing []string
	for i, id := range ids {
		if known, ok := b.briefs.GetIfPresent(jobKey{tenant, id}); ok && epochs[i] <= known.epoch+1 {
			out[id] = known
		} else {
			missing = append(missing, id)
		}
	}
	found, err := b.load(ctx, tenant, missing, recordFields)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			out[r.id] = briefOf(r.spec, r.run.epoch)
			b.remember(jobKey{tenant, r.id}, out[r.id])
		}
	}
	return out, nil
}

// view is a job as the API shows it.
func (r *record) view(errs []string) (*api.Job, error) {
	j := &api.Job{ID: r.id, JobSpec: *r.spec, State: r.run.state, Attempt: r.run.attempt}
	j.JobOptions = r.spec.WithDefaults()
	if len(j.Payload) == 0 {
		j.Payload = json.RawMessage("null")
	}
	j.StateSinceMS = r.run.at
	switch {
	case r.run.state == api.JobActive:
		j.Lease = &api.Lease{Epoch: r.run.epoch, ExpiresMS: r.run.at, WorkerID: r.run.worker}
		j.StateSinceMS = 0
	case r.run.state == api.JobScheduled || r.run.state == api.JobRetrying:
		j.DueAtMS, j.StateSinceMS = r.run.at, 0
	case r.run.state.Terminal():
		j.EndedAtMS = r.run.at
	}
	j.Progress, j.Checkpoint, j.Result = rawOf(r.more[fieldProgress]), rawOf(r.more[fieldCheckpoint]), rawOf(r.more[fieldResult])
	if r.run.state == api.JobHeld {
		j.HoldReason = r.more[fieldHoldReason]
	}
	if r.run.state == api.JobDead {
		j.DeadReason = r.more[fieldDeadReason]
	}
	for _, raw := range errs {
		var e api.JobError
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			return nil, fmt.Errorf("queue: a stored error cannot be read: %w", err)
		}
		j.Errors = append(j.Errors, e)
	}
	return j, nil
}

func rawOf(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
