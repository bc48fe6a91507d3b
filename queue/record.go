package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// The fields of a job's hash, each there only where it says something. Most jobs
// have no hash: a job's spec and its run have keys of their own.
const (
	fieldProgress   = "progress"
	fieldCheckpoint = "checkpoint"
	fieldResult     = "result"
	fieldHoldReason = "hold_reason"
	fieldDeadReason = "dead_reason"
)

// encodeSpec writes a spec as its header in JSON, a line break, and the payload
// as it was sent: most readers need only one of the two.
func encodeSpec(s *api.JobSpec) (string, error) {
	if header, ok := encodePlain(s); ok {
		return header + "\n" + string(s.Payload), nil
	}
	header := *s
	header.Payload = nil
	raw, err := api.EncodeJSON(header)
	if err != nil {
		return "", fmt.Errorf("queue: encode a job: %w", err)
	}
	return string(raw) + "\n" + string(s.Payload), nil
}

// The text between the values of a header without options.
const (
	headerQueue   = `","queue":"`
	headerCreated = `","payload":null,"created_at_ms":`
	headerScore   = `,"score":`
)

// encodePlain writes the header of a job without options, the most frequent kind, as
// EncodeJSON would, in a tenth of the time. ok is false for any other job.
func encodePlain(s *api.JobSpec) (header string, ok bool) {
	rest := *s
	rest.Namespace, rest.Queue, rest.Payload, rest.CreatedAtMS, rest.Score = "", "", nil, 0, 0
	if !reflect.ValueOf(&rest).Elem().IsZero() || !bare(s.Namespace) || !bare(s.Queue) {
		return "", false
	}
	b := make([]byte, 0, 128)
	b = append(append(b, `{"namespace":"`...), s.Namespace...)
	b = append(append(b, headerQueue...), s.Queue...)
	b = strconv.AppendInt(append(b, headerCreated...), s.CreatedAtMS, 10)
	b = strconv.AppendInt(append(b, headerScore...), s.Score, 10)
	return string(append(b, '}')), true
}

// bare reports whether JSON writes s as it is.
func bare(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// decodePlain reads what encodePlain writes. ok is false for any other header.
func decodePlain(header string) (s *api.JobSpec, ok bool) {
	header, begins := strings.CutPrefix(header, `{"namespace":"`)
	header, ends := strings.CutSuffix(header, "}")
	namespace, header, ok1 := strings.Cut(header, headerQueue)
	queue, header, ok2 := strings.Cut(header, headerCreated)
	created, score, ok3 := strings.Cut(header, headerScore)
	if !begins || !ends || !ok1 || !ok2 || !ok3 || !bare(namespace) || !bare(queue) {
		return nil, false
	}
	s = &api.JobSpec{Namespace: namespace, Queue: queue}
	var err1, err2 error
	s.CreatedAtMS, err1 = strconv.ParseInt(created, 10, 64)
	s.Score, err2 = strconv.ParseInt(score, 10, 64)
	return s, err1 == nil && err2 == nil
}

// specBegin is how the spec of every job of q begins: what JobSpec encodes first.
func specBegin(q queueKey) string {
	return `{"namespace":"` + q.namespace + `","queue":"` + q.queue + `",`
}

func decodeSpec(text string) (*api.JobSpec, error) {
	header, payload, ok := strings.Cut(text, "\n")
	if !ok {
		return nil, errors.New("queue: a stored job has no payload")
	}
	s, ok := decodePlain(header)
	if !ok {
		s = &api.JobSpec{}
		if err := json.Unmarshal([]byte(header), s); err != nil {
			return nil, fmt.Errorf("queue: a stored job cannot be read: %w", err)
		}
	}
	s.Payload = json.RawMessage(payload)
	return s, nil
}

// brief is the part of a job that settling it needs: some of its spec, and its run. It holds for leases up
// to the one that follows epoch: moving a job, which makes its epoch grow, comes
// before any later one.
type brief struct {
	epoch            int64
	namespace, queue string
	unique           string
	schema           json.RawMessage
	run              string // as stored when epoch's lease began, or as read since
}

func briefOf(s *api.JobSpec, r run, text string) *brief {
	// The names of a decoded spec are parts of the stored text, payload and all.
	return &brief{r.epoch, strings.Clone(s.Namespace), strings.Clone(s.Queue), s.UniqueKey, s.ResultSchema, text}
}

// record is a job as it is stored.
type record struct {
	id   string
	text string // of run, for compare-and-set
	run  run
	spec *api.JobSpec
	more map[string]string // the details that were read
}

func (r *record) key(tenant string) queueKey {
	return queueKey{tenant, r.spec.Namespace, r.spec.Queue}
}

// details are the fields that are read where a job is shown, beside its spec and run.
var details = []string{fieldProgress, fieldCheckpoint, fieldResult, fieldHoldReason, fieldDeadReason}

// load reads jobs and some of their details; jobs that do not exist are nil.
func (b *Broker) load(ctx context.Context, tenant string, ids []string, fields ...string) ([]*record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	keys := b.store.JobKeys(tenant)
	pipe := b.rdb.Pipeline()
	// Run and spec of a job by one command: they belong together. The details behind
	// them: those of the run that was read are there by then.
	pairs := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		pairs = append(pairs, keys.Run(id), keys.Spec(id))
	}
	stored := pipe.MGet(ctx, pairs...)
	replies := make([]*redis.SliceCmd, len(ids))
	if len(fields) > 0 {
		for i, id := range ids {
			replies[i] = pipe.HMGet(ctx, keys.Meta(id), fields...)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	out, held := make([]*record, len(ids)), texts(stored.Val())
	for i, id := range ids {
		r, err := newRecord(id, held[2*i], held[2*i+1])
		if err != nil {
			return nil, err
		}
		if out[i] = r; r != nil && replies[i] != nil {
			for k, text := range texts(replies[i].Val()) {
				if text != "" {
					r.more[fields[k]] = text
				}
			}
		}
	}
	return out, nil
}

// newRecord reads a job; nil where it has no run, and so does not exist.
func newRecord(id, text, spec string) (r *record, err error) {
	r = &record{id: id, text: text, more: map[string]string{}}
	if r.text == "" {
		return nil, nil //nolint:nilnil // documented: no job
	}
	if r.run, err = parseRun(r.text); err != nil {
		return nil, err
	}
	r.spec, err = decodeSpec(spec)
	return r, err
}

// statesOf reads where jobs stand, "" where there is none, and nothing else of them:
// their payloads may be large.
func (b *Broker) statesOf(ctx context.Context, tenant string, ids []string) ([]api.JobState, error) {
	out := make([]api.JobState, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	runs := make([]string, len(ids))
	for i, id := range ids {
		runs[i] = b.store.JobKeys(tenant).Run(id)
	}
	reply, err := b.rdb.MGet(ctx, runs...).Result()
	if err != nil {
		return nil, b.failure(ctx, "read jobs", err)
	}
	for i, text := range texts(reply) {
		if text != "" {
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
	found, err := b.load(ctx, tenant, []string{id}, details...)
	if err != nil {
		return nil, err
	}
	if found[0] == nil {
		return nil, jobNotFound(id)
	}
	return found[0], nil
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
	found, err := b.load(ctx, tenant, missing)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r != nil {
			out[r.id] = briefOf(r.spec, r.run, r.text)
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
	j.Progress, j.Checkpoint = rawOf(r.more[fieldProgress]), rawOf(r.more[fieldCheckpoint])
	switch r.run.state { // the details may be newer than the run
	case api.JobCompleted:
		j.Result = rawOf(r.more[fieldResult])
	case api.JobHeld:
		j.HoldReason = r.more[fieldHoldReason]
	case api.JobDead:
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
