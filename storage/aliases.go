package storage

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/api/quota"
)

// Aliases keeps the named pointers to versions. An alias never points at a version that does
// not exist: the script that sets it compares the number with version_seq, and versions are
// never removed.
type Aliases struct{ s *Store }

// NewAliases returns the aliases in s.
func NewAliases(s *Store) *Aliases { return &Aliases{s} }

// Set points an alias at an existing version. With ifMatch it does so only if the alias
// points at version *ifMatch, or does not exist where *ifMatch is 0. CodeFunctionNotFound,
// CodeVersionNotFound, CodePreconditionFailed, CodeTenantQuota.
func (r *Aliases) Set(ctx context.Context, tenant, namespace, function, alias string, version int64, ifMatch *int64, nowMS int64) (api.Alias, error) {
	a := api.Alias{Alias: alias, Version: version, UpdatedAtMS: nowMS}
	raw, err := Encode(a)
	if err != nil {
		return api.Alias{}, err
	}
	if version < 1 {
		return api.Alias{}, versionNotFound(version)
	}
	k := r.s.keys.function(tenant, namespace, function)
	err = r.s.TakingNew(ctx, tenant, k.aliases(), alias, quota.Aliases, func() error {
		_, err := r.s.Script(ctx, scriptAliasSet,
			[]string{k.meta(), k.versionSeq(), k.aliases(), k.alias(alias), r.s.JobKeys(tenant).Events()},
			raw, alias, version, matchArg(ifMatch), aliasChange(ctx, event.AliasSet, nowMS, namespace, function, alias, version))
		return err
	})
	switch api.ErrorCode(err) { // the script cannot name them
	case api.CodeFunctionNotFound:
		err = functionNotFound(function)
	case api.CodeVersionNotFound:
		err = versionNotFound(version)
	}
	if err != nil {
		return api.Alias{}, err
	}
	return a, nil
}

func matchArg(ifMatch *int64) string {
	if ifMatch == nil {
		return ""
	}
	return strconv.FormatInt(*ifMatch, 10)
}

// Get returns an alias. CodeAliasNotFound.
func (r *Aliases) Get(ctx context.Context, tenant, namespace, function, alias string) (api.Alias, error) {
	raw, err := r.s.rdb.Get(ctx, r.s.keys.function(tenant, namespace, function).alias(alias)).Result()
	if errors.Is(err, redis.Nil) {
		return api.Alias{}, aliasNotFound(alias)
	}
	if err != nil {
		return api.Alias{}, Failure(ctx, "read alias", err)
	}
	return Decode[api.Alias](raw)
}

func aliasNotFound(alias string) error {
	return api.Errorf(api.CodeAliasNotFound, "alias %q does not exist", alias)
}

// List returns a page of a function's aliases by name, after the name after. next is "" at
// the end. A page may be short and still have a next.
func (r *Aliases) List(ctx context.Context, tenant, namespace, function, after string, limit int) (items []api.Alias, next string, err error) {
	limit = PageLimit(limit)
	k := r.s.keys.function(tenant, namespace, function)
	names, err := r.s.LexRange(ctx, k.aliases(), after, limit+1)
	if err != nil {
		return nil, "", Failure(ctx, "list aliases", err)
	}
	names, next = FirstPage(names, limit)
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = k.alias(name)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, "", Failure(ctx, "list aliases", err)
	}
	items = make([]api.Alias, 0, len(raws))
	for _, raw := range raws {
		if raw == "" {
			continue // a write was interrupted between the alias and its index
		}
		a, err := Decode[api.Alias](raw)
		if err != nil {
			return nil, "", err
		}
		items = append(items, a)
	}
	return items, next, nil
}

// Delete removes an alias; with ifMatch, only if it points at version *ifMatch.
// CodeAliasNotFound, CodePreconditionFailed.
func (r *Aliases) Delete(ctx context.Context, tenant, namespace, function, alias string, ifMatch *int64) error {
	k := r.s.keys.function(tenant, namespace, function)
	_, err := r.s.ScriptOnce(ctx, scriptAliasDelete, []string{k.alias(alias), k.aliases(), r.s.JobKeys(tenant).Events()},
		alias, matchArg(ifMatch), aliasChange(ctx, event.AliasDeleted, r.s.NowMS(), namespace, function, alias, 0))
	if err == nil {
		r.s.Returned(ctx, tenant, One(quota.Aliases))
	}
	if api.ErrorCode(err) == api.CodeAliasNotFound {
		err = aliasNotFound(alias)
	}
	return err
}

// Versions returns for each of the functions the version that its alias of a name points at, 0 where
// it has no such alias.
func (r *Aliases) Versions(ctx context.Context, tenant, namespace string, functions []string, alias string) ([]int64, error) {
	keys := make([]string, len(functions))
	for i, name := range functions {
		keys[i] = r.s.keys.function(tenant, namespace, name).alias(alias)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, Failure(ctx, "read aliases", err)
	}
	numbers := make([]int64, len(functions))
	for i, raw := range raws {
		if raw == "" {
			continue
		}
		a, err := Decode[api.Alias](raw)
		if err != nil {
			return nil, err
		}
		numbers[i] = a.Version
	}
	return numbers, nil
}
