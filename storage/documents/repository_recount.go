package documents

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// recountPage is the number of records that one step of a recount reads, values included.
const recountPage = 32

// Recount is the result of one step of a recount.
type Recount struct {
	Done bool // the step was the last one of a walk
	// Drift is the excess that the step removed from the counts. No crash leaves a count too low.
	// Its bytes are negative where an earlier release has set a schema, which it did not count.
	Drift Count
	// Dangling is the number of index entries without a record, which were removed.
	Dangling int
}

// Recount takes one step of a recount of a namespace: it counts recountPage documents. It
// continues where the last step of any process ended; other callers may write meanwhile. It
// removes the expired documents that it meets, and index entries without a document.
//
// The progress is in the usage hash, so that writers take part. A namespace of four documents
// of 10 bytes with one record too many in its count, and pages of two:
//
//	r 5 b 50                        before
//	r 5 b 50  wr 2 wb 20 w "b"      a step: a and b are counted
//	r 4 b 40  wr 1 wb 10 w "b"      a writer deletes a, which the walk has passed
//	r 3 b 30  wr 1 wb 10 w "b"      a writer deletes d, which it has not
//	r 2 b 20                        the last step counts c; the drift is 1 record, 10 bytes
//
// A crash between two steps leaves the progress, and the next step continues.
func (r *Repository) Recount(ctx context.Context, p storage.DocumentPath, nowMS int64) (Recount, error) {
	k := r.s.Keys().Documents(p)
	reply, err := r.s.Script(ctx, scriptRecount,
		[]string{
			k.Records(), k.Index(), r.s.Keys().DocumentUsage(p.Tenant, p.Install), r.s.Keys().DocumentTenantUsage(p.Tenant),
			k.Schema(), r.s.Keys().DocumentNames(p.Tenant),
		},
		p.Namespace, p.Install, nowMS, recountPage)
	if err != nil {
		return Recount{}, err
	}
	parts, _ := reply.([]any)
	out, err := recounted(parts)
	if err != nil || len(parts) <= recountHead {
		return out, err
	}
	var expired []string
	for _, part := range parts[recountHead:] {
		key, _ := part.(string)
		expired = append(expired, key)
	}
	return out, r.Expire(ctx, p, expired, nowMS)
}

// recountHead is the number of counters in the reply of a recount of a namespace. A
// recount of a tenant replies with the first three.
const recountHead = 4

func recounted(parts []any) (Recount, error) {
	if len(parts) < recountHead-1 {
		return Recount{}, api.Errorf(api.CodeInternal, "the script of a recount replied %v", parts)
	}
	out := Recount{
		Done:  replyInt(parts[0]) == 1,
		Drift: Count{Records: replyInt(parts[1]), Bytes: replyInt(parts[2])},
	}
	if len(parts) >= recountHead {
		out.Dangling = int(replyInt(parts[3]))
	}
	return out, nil
}

// RecountTenant takes one step of a recount of a tenant: it adds up the counts of one install,
// in the order of their names; the step after the last install corrects the counts of the
// tenant. Recounts of the namespaces correct their counts, and the tenant's by the same
// amount; RecountTenant finds the remaining drift, such as the counts of a deleted namespace.
func (r *Repository) RecountTenant(ctx context.Context, tenant string) (out Recount, err error) {
	err = storage.RetryConflicts(ctx, func() error {
		out, err = r.recountTenant(ctx, tenant)
		return err
	})
	return out, err
}

func (r *Repository) recountTenant(ctx context.Context, tenant string) (Recount, error) {
	usage, installs := r.s.Keys().DocumentTenantUsage(tenant), r.s.Keys().DocumentInstalls(tenant)
	after, err := storage.Optional(r.s.Client().HGet(ctx, usage, "w"))
	if err != nil {
		return Recount{}, storage.Failure(ctx, "recount documents", err)
	}
	following, err := r.s.LexRange(ctx, installs, after, 1)
	if err != nil {
		return Recount{}, storage.Failure(ctx, "recount documents", err)
	}
	keys, args := []string{usage, installs, usage, installs}, []any{""}
	if len(following) > 0 {
		install := following[0]
		names, err := r.namespaces(ctx, tenant, install)
		if err != nil {
			return Recount{}, err
		}
		keys[2], keys[3] = r.s.Keys().DocumentUsage(tenant, install), r.s.Keys().DocumentNamespaces(tenant, install)
		args[0] = install
		for _, name := range names {
			args = append(args, name)
		}
	}
	reply, err := r.s.Script(ctx, scriptRecountTenant, keys, args...)
	if err != nil {
		return Recount{}, err
	}
	parts, _ := reply.([]any)
	return recounted(parts)
}
