package storage

import (
	"context"

	"github.com/codesous/sous/api"
)

// recountPage is how many records one step of a recount reads, with their values.
const recountPage = 32

// DocumentRecount is what a step of a recount did.
type DocumentRecount struct {
	Done bool // at the end of a walk
	// Drift is how much too much was counted, and is not any more. Less than nothing would
	// be too little, which no crash makes it.
	Drift DocumentCount
	// Dangling are entries of the index that had no record, and went.
	Dangling int
}

// Recount takes a step of a recount of a namespace, which goes on where anybody's last one
// stopped. Others may write meanwhile. What it finds expired it removes.
func (r *Documents) Recount(ctx context.Context, p DocumentPath, nowMS int64) (DocumentRecount, error) {
	k := r.s.keys.documents(p)
	reply, err := r.s.eval(ctx, scriptDocumentRecount,
		[]string{k.records(), k.index(), r.s.keys.documentUsage(p.Tenant, p.Install), r.s.keys.documentTenantUsage(p.Tenant)},
		p.Namespace, p.Install, nowMS, recountPage)
	if err != nil {
		return DocumentRecount{}, err
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

// recountHead is how many numbers a recount of a namespace answers; that of a tenant
// answers the first three.
const recountHead = 4

func recounted(parts []any) (DocumentRecount, error) {
	if len(parts) < recountHead-1 {
		return DocumentRecount{}, api.Errorf(api.CodeInternal, "a recount answered %v", parts)
	}
	out := DocumentRecount{
		Done:  replyInt(parts[0]) == 1,
		Drift: DocumentCount{Records: replyInt(parts[1]), Bytes: replyInt(parts[2])},
	}
	if len(parts) >= recountHead {
		out.Dangling = int(replyInt(parts[3]))
	}
	return out, nil
}

// RecountTenant takes a step of adding up what a tenant uses, an install a step, as Recount
// does.
func (r *Documents) RecountTenant(ctx context.Context, tenant string) (out DocumentRecount, err error) {
	err = retryConflicts(ctx, func() error {
		out, err = r.recountTenant(ctx, tenant)
		return err
	})
	return out, err
}

func (r *Documents) recountTenant(ctx context.Context, tenant string) (DocumentRecount, error) {
	usage, installs := r.s.keys.documentTenantUsage(tenant), r.s.keys.documentInstalls(tenant)
	after, err := Optional(r.s.rdb.HGet(ctx, usage, "w"))
	if err != nil {
		return DocumentRecount{}, failure(ctx, "recount documents", err)
	}
	following, err := r.s.lexRange(ctx, installs, after, 1)
	if err != nil {
		return DocumentRecount{}, failure(ctx, "recount documents", err)
	}
	keys, args := []string{usage, installs, usage, installs}, []any{""}
	if len(following) > 0 {
		install := following[0]
		names, err := r.namespaces(ctx, tenant, install)
		if err != nil {
			return DocumentRecount{}, err
		}
		keys[2], keys[3] = r.s.keys.documentUsage(tenant, install), r.s.keys.documentNamespaces(tenant, install)
		args[0] = install
		for _, name := range names {
			args = append(args, name)
		}
	}
	reply, err := r.s.eval(ctx, scriptDocumentTenant, keys, args...)
	if err != nil {
		return DocumentRecount{}, err
	}
	parts, _ := reply.([]any)
	return recounted(parts)
}
