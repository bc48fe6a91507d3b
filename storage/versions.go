package storage

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// Versions keeps published versions. Version N exists if and only if N is at most
// version_seq. Every read checks that, since an interrupted publish may have left the keys
// of the following number.
type Versions struct{ s *Store }

// NewVersions returns the versions in s.
func NewVersions(s *Store) *Versions { return &Versions{s} }

// Get returns version n. CodeVersionNotFound.
func (r *Versions) Get(ctx context.Context, tenant, namespace, function string, n int64) (api.Version, error) {
	k := r.s.keys.function(tenant, namespace, function)
	raws, err := r.s.GetMany(ctx, []string{k.versionSeq(), k.versionMeta(n)})
	if err != nil {
		return api.Version{}, Failure(ctx, "read version", err)
	}
	return existingVersion(raws[0], raws[1], n)
}

// existingVersion reads version n from the counter and the stored record.
func existingVersion(seq, raw string, n int64) (api.Version, error) {
	latest, err := parseSeq(seq)
	if err != nil {
		return api.Version{}, err
	}
	if n < 1 || n > latest {
		return api.Version{}, versionNotFound(n)
	}
	return Decode[api.Version](raw)
}

func versionNotFound(n int64) error {
	return api.Errorf(api.CodeVersionNotFound, "version %d does not exist", n)
}

// Counts returns the numbers of versions and of aliases of a function.
func (r *Versions) Counts(ctx context.Context, at FunctionPath) (versions, aliases int64, err error) {
	k := r.s.keys.function(at.Tenant, at.Namespace, at.Function)
	pipe := r.s.rdb.Pipeline()
	seq, named := pipe.Get(ctx, k.versionSeq()), pipe.ZCard(ctx, k.aliases())
	if err := ExecOptional(ctx, pipe); err != nil {
		return 0, 0, Failure(ctx, "count versions", err)
	}
	versions, err = parseSeq(seq.Val())
	return versions, named.Val(), err
}

// Latest returns the number of the newest version, 0 if none exists.
func (r *Versions) Latest(ctx context.Context, tenant, namespace, function string) (int64, error) {
	raw, err := Optional(r.s.rdb.Get(ctx, r.s.keys.function(tenant, namespace, function).versionSeq()))
	if err != nil {
		return 0, Failure(ctx, "read version_seq", err)
	}
	return parseSeq(raw)
}

// List returns a page of a function's versions, newest first, below the number before (0
// for the newest). next is 0 at the end, else the before of the next page.
func (r *Versions) List(ctx context.Context, tenant, namespace, function string, before int64, limit int) (items []api.Version, next int64, err error) {
	limit = PageLimit(limit)
	newest, err := r.Latest(ctx, tenant, namespace, function)
	if err != nil {
		return nil, 0, err
	}
	if before > 0 {
		newest = min(newest, before-1)
	}
	k := r.s.keys.function(tenant, namespace, function)
	var keys []string
	for n := newest; n > 0 && len(keys) < limit; n-- {
		keys = append(keys, k.versionMeta(n))
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, 0, Failure(ctx, "list versions", err)
	}
	items = make([]api.Version, 0, len(raws))
	for _, raw := range raws {
		v, err := Decode[api.Version](raw)
		if err != nil {
			return nil, 0, err
		}
		items = append(items, v)
	}
	if oldest := newest - int64(len(items)) + 1; oldest > 1 && len(items) > 0 {
		next = oldest
	}
	return items, next, nil
}

// GetEach returns for each of the functions its version of the number at the same index. The numbers are
// those of aliases, so the versions exist.
func (r *Versions) GetEach(ctx context.Context, tenant, namespace string, functions []string, numbers []int64) ([]api.Version, error) {
	keys := make([]string, len(functions))
	for i, name := range functions {
		keys[i] = r.s.keys.function(tenant, namespace, name).versionMeta(numbers[i])
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, Failure(ctx, "read versions", err)
	}
	versions := make([]api.Version, len(functions))
	for i, raw := range raws {
		if raw == "" {
			return nil, versionNotFound(numbers[i])
		}
		versions[i], err = Decode[api.Version](raw)
		if err != nil {
			return nil, err
		}
	}
	return versions, nil
}

// Bundle returns a version's canonical tar. CodeVersionNotFound.
func (r *Versions) Bundle(ctx context.Context, tenant, namespace, function string, n int64) ([]byte, error) {
	latest, err := r.Latest(ctx, tenant, namespace, function)
	if err != nil {
		return nil, err
	}
	if n < 1 || n > latest {
		return nil, versionNotFound(n)
	}
	tar, err := r.s.rdb.Get(ctx, r.s.keys.function(tenant, namespace, function).versionBundle(n)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, api.Wrap(api.CodeInternal, err, "a version's bundle is missing")
	}
	return tar, Failure(ctx, "read bundle", err)
}

// Resolved is the function and version that a ref means. Alias is "" where the ref named a
// version.
type Resolved struct {
	Function api.Function
	Version  api.Version
	Alias    string
}

// Resolve returns the live function and the version that ref means, in one round trip for
// a version and two for an alias. CodeFunctionNotFound, CodeAliasNotFound,
// CodeVersionNotFound.
func (r *Versions) Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (Resolved, error) {
	k := r.s.keys.function(tenant, namespace, function)
	third := k.versionMeta(ref.Version)
	byAlias := ref.Alias != "" && ref.Version == 0
	if byAlias {
		third = k.alias(ref.Alias)
	}
	raws, err := r.s.GetMany(ctx, []string{k.meta(), k.versionSeq(), third})
	if err != nil {
		return Resolved{}, Failure(ctx, "resolve", err)
	}
	if raws[0] == "" {
		return Resolved{}, functionNotFound(function)
	}
	f, err := liveFunction(raws[0], function)
	if err != nil {
		return Resolved{}, err
	}
	n, raw := ref.Version, raws[2]
	if byAlias {
		if raw == "" {
			return Resolved{}, aliasNotFound(ref.Alias)
		}
		a, err := Decode[api.Alias](raw)
		if err != nil {
			return Resolved{}, err
		}
		n = a.Version
		// A version's record never changes, so it may be read after its alias.
		raw, err = Optional(r.s.rdb.Get(ctx, k.versionMeta(n)))
		if err != nil {
			return Resolved{}, Failure(ctx, "resolve", err)
		}
	}
	v, err := existingVersion(raws[1], raw, n)
	return Resolved{Function: f, Version: v, Alias: ref.Alias}, err
}
