package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// eventField returns the field of an event with an id, which orders the events of a job.
func eventField(id, name string) string { return jobstore.FieldEvent + id + ":" + name }

// nameOf returns the name of the event that a field has, "" if it has none.
func nameOf(field string) string {
	rest, ok := strings.CutPrefix(field, jobstore.FieldEvent)
	if !ok {
		return ""
	}
	_, name, _ := strings.Cut(rest, ":")
	return name
}

// arrivals returns the fields of a job's events and decisions, oldest first, without those in taken.
func (r *Runs) arrivals(ctx context.Context, tenant, id string, taken map[string]bool) ([]string, error) {
	fields, err := r.rdb.HKeys(ctx, r.store.JobKeys(tenant).Meta(id)).Result()
	if err != nil {
		return nil, jobstore.Failure(ctx, "read the events of a job", err)
	}
	fields = slices.DeleteFunc(fields, func(f string) bool {
		return taken[f] || nameOf(f) == "" && !strings.HasPrefix(f, jobstore.FieldDecision)
	})
	slices.Sort(fields)
	return fields, nil
}

// Arrived returns what has ended waits of the job that l leases, at most one Arrival for each of
// waits: an event, a decision, or the end of its time. taken are the arrivals that have ended other
// waits. Errors: CodeStoreUnavailable.
func (r *Runs) Arrived(ctx context.Context, l step.Lease, waits []step.Step, taken map[string]bool) ([]step.Arrival, error) {
	var fields []string
	for i := range waits {
		if waits[i].Kind == step.KindEvent || waits[i].Kind == step.KindApproval {
			var err error
			fields, err = r.arrivals(ctx, l.Tenant, l.ID, taken)
			if err != nil {
				return nil, err
			}
			break
		}
	}
	now := r.store.NowMS()
	var out []step.Arrival
	for i := range waits {
		w := &waits[i]
		at := slices.IndexFunc(fields, func(f string) bool { return f != "" && ends(f, w) })
		switch {
		case at >= 0:
			value, err := r.rdb.HGet(ctx, r.store.JobKeys(l.Tenant).Meta(l.ID), fields[at]).Bytes()
			if err != nil {
				return nil, jobstore.Failure(ctx, "read an event of a job", err)
			}
			out = append(out, step.Arrival{Key: w.Key(), ID: fields[at], Value: json.RawMessage(value)})
			fields[at] = ""
		case w.DueAtMS > 0 && w.DueAtMS <= now:
			out = append(out, step.Arrival{Key: w.Key()})
		}
	}
	return out, nil
}

// ends reports whether the arrival of a field ends the wait w.
func ends(field string, w *step.Step) bool {
	if w.Kind == step.KindApproval {
		return strings.HasPrefix(field, jobstore.FieldDecision)
	}
	return w.Kind == step.KindEvent && nameOf(field) == w.Name
}

// tooMany returns the error for a run whose events wait for the run to take them.
func tooMany(id string) error {
	return api.Errorf(api.CodeCapacityLimit, "%d events wait in run %s, which has not taken them", step.MaxEvents, id)
}
