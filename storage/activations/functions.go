package activations

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// namespacePage is the number of namespaces whose functions are read in one round trip.
const namespacePage = 100

// functions returns the functions of a tenant, or of one of its namespaces, deleted ones included.
// CodeValidationName for more than MaxListed functions or namespaces.
func (r *Repository) functions(ctx context.Context, tenant, namespace string) (all []storage.FunctionPath, err error) {
	namespaces := []string{namespace}
	if namespace == "" {
		namespaces, err = r.namespaces(ctx, tenant)
		if err != nil {
			return nil, err
		}
	}
	for page := range slices.Chunk(namespaces, namespacePage) {
		filled, err := r.withFunctions(ctx, tenant, page, MaxListed-len(all))
		if err != nil {
			return nil, err
		}
		pipe := r.s.Client().Pipeline()
		names := make([]*redis.StringSliceCmd, len(filled))
		for i, ns := range filled {
			names[i] = pipe.ZRangeByLex(ctx, r.s.Keys().FunctionIndex(tenant, ns), &redis.ZRangeBy{Min: "-", Max: "+", Count: MaxListed})
		}
		if len(filled) > 0 {
			_, err := pipe.Exec(ctx)
			if err != nil {
				return nil, storage.Failure(ctx, "list functions", err)
			}
		}
		for i, ns := range filled {
			for _, name := range names[i].Val() {
				all = append(all, storage.FunctionPath{Tenant: tenant, Namespace: ns, Function: name})
			}
		}
	}
	return all, nil
}

// namespaces returns the namespaces of a tenant. CodeValidationName for more than MaxListed.
func (r *Repository) namespaces(ctx context.Context, tenant string) (all []string, err error) {
	key := r.s.Keys().Namespaces(tenant)
	n, err := r.s.Client().SCard(ctx, key).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "count namespaces", err)
	}
	if n > MaxListed {
		return nil, api.Errorf(api.CodeValidationName, "there are more than %d namespaces: name one", MaxListed)
	}
	all, _, err = r.s.Members(ctx, key)
	return all, err
}

// withFunctions returns those namespaces that have functions. CodeValidationName if there are more
// than most in all of them.
func (r *Repository) withFunctions(ctx context.Context, tenant string, namespaces []string, most int) (found []string, err error) {
	pipe := r.s.Client().Pipeline()
	sizes := make([]*redis.IntCmd, len(namespaces))
	for i, ns := range namespaces {
		sizes[i] = pipe.ZCard(ctx, r.s.Keys().FunctionIndex(tenant, ns))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, storage.Failure(ctx, "count functions", err)
	}
	sum := 0
	for i, ns := range namespaces {
		n := int(sizes[i].Val())
		if n > 0 {
			found = append(found, ns)
		}
		sum += n
	}
	if sum > most {
		return nil, api.Errorf(api.CodeValidationName, "there are more than %d functions: name a namespace or a function", MaxListed)
	}
	return found, nil
}
