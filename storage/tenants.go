package storage

import (
	"context"
	"iter"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
)

// Tenants is the registry of tenants and their namespaces: the set cs:tenants, and a set
// cs:tenant:t:namespaces for each tenant. A namespace is registered before its first record
// is written and is never removed, so a walk from the registry reaches every record. A crash
// in between leaves an entry without records, which does no harm.
type Tenants struct{ s *Store }

// NewTenants returns the registry in s.
func NewTenants(s *Store) *Tenants { return &Tenants{s} }

// RegisterNamespace adds a tenant and its namespace to the registry, before the first record of the
// namespace is written. It may be repeated. The tenant comes first, so that every
// namespace in the registry can be reached from its root.
//
// CodeTenantQuota for a new namespace of a tenant that may have no more.
func (r *Tenants) RegisterNamespace(ctx context.Context, tenant, namespace string) error {
	if r.s.quotas == nil {
		return r.register(ctx, tenant, namespace)
	}
	known, err := r.HasNamespace(ctx, tenant, namespace)
	if err != nil || known {
		return err
	}
	return r.s.Taking(ctx, tenant, func() error { return r.register(ctx, tenant, namespace) }, One(quota.Namespaces))
}

func (r *Tenants) register(ctx context.Context, tenant, namespace string) error {
	if err := r.s.rdb.SAdd(ctx, keyTenants, tenant).Err(); err != nil {
		return Failure(ctx, "register tenant", err)
	}
	return Failure(ctx, "register namespace", r.s.rdb.SAdd(ctx, r.s.keys.Namespaces(tenant), namespace).Err())
}

// Exists reports whether the tenant has ever had a record.
func (r *Tenants) Exists(ctx context.Context, tenant string) (bool, error) {
	ok, err := r.s.rdb.SIsMember(ctx, keyTenants, tenant).Result()
	return ok, Failure(ctx, "look up tenant", err)
}

// HasNamespace reports whether the namespace has ever had a record.
func (r *Tenants) HasNamespace(ctx context.Context, tenant, namespace string) (bool, error) {
	ok, err := r.s.rdb.SIsMember(ctx, r.s.keys.Namespaces(tenant), namespace).Result()
	return ok, Failure(ctx, "look up namespace", err)
}

// List returns a page of all tenants, in order, after the tenant after. next is "" at the
// end, else the after of the next page.
func (r *Tenants) List(ctx context.Context, after string, limit int) (items []string, next string, err error) {
	return r.s.PageOfSet(ctx, keyTenants, after, limit)
}

// All returns all tenants in order, and the number of commands that it took.
func (r *Tenants) All(ctx context.Context) ([]string, int, error) {
	return r.s.Members(ctx, keyTenants)
}

// Namespaces returns a page of a tenant's namespaces, in order, after the namespace after.
// next is "" at the end, else the after of the next page.
func (r *Tenants) Namespaces(ctx context.Context, tenant, after string, limit int) (items []string, next string, err error) {
	return r.s.PageOfSet(ctx, r.s.keys.Namespaces(tenant), after, limit)
}

// FunctionPath names one function of the whole store; or a namespace, without a
// Function; or a tenant, without either.
type FunctionPath struct{ Tenant, Namespace, Function string }

// Walk iterates over every tenant, every namespace of each, and every function of those,
// deleted ones included. It reads some entries at a time and in no order, may yield one
// twice, and may miss one that is added meanwhile. A tenant comes before its namespaces, and
// a namespace before its functions. Walk ends at the first error, which it yields.
func (r *Tenants) Walk(ctx context.Context) iter.Seq2[FunctionPath, error] {
	return func(yield func(FunctionPath, error) bool) {
		r.walk(ctx, yield, func(at FunctionPath) bool {
			return yield(at, nil) && r.walkNamespace(ctx, at.Tenant, at.Namespace, yield)
		})
	}
}

// WalkNamespaces is Walk without the functions.
func (r *Tenants) WalkNamespaces(ctx context.Context) iter.Seq2[FunctionPath, error] {
	return func(yield func(FunctionPath, error) bool) {
		r.walk(ctx, yield, func(at FunctionPath) bool { return yield(at, nil) })
	}
}

// walk yields every tenant and calls namespace for each of its namespaces, until one of them
// returns false.
func (r *Tenants) walk(ctx context.Context, yield func(FunctionPath, error) bool, namespace func(FunctionPath) bool) {
	for tenants, err := range r.s.ScanSet(ctx, keyTenants) {
		if err != nil {
			yield(FunctionPath{}, err)
			return
		}
		for _, tenant := range tenants {
			if !yield(FunctionPath{Tenant: tenant}, nil) {
				return
			}
			for namespaces, err := range r.s.ScanSet(ctx, r.s.keys.Namespaces(tenant)) {
				if err != nil {
					yield(FunctionPath{}, err)
					return
				}
				for _, ns := range namespaces {
					if !namespace(FunctionPath{tenant, ns, ""}) {
						return
					}
				}
			}
		}
	}
}

func (r *Tenants) walkNamespace(ctx context.Context, tenant, namespace string, yield func(FunctionPath, error) bool) bool {
	for after := ""; ; {
		names, next, err := NewFunctions(r.s).Names(ctx, tenant, namespace, after, api.MaxPageLimit)
		if err != nil {
			yield(FunctionPath{}, err)
			return false
		}
		for _, name := range names {
			if !yield(FunctionPath{tenant, namespace, name}, nil) {
				return false
			}
		}
		if next == "" {
			return true
		}
		after = next
	}
}
