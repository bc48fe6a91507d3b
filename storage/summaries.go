package storage

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/traffic"
)

// summaryAliases is the number of aliases that a summary of a function shows at least.
const summaryAliases = 20

// Summaries returns a page of a namespace's functions by name, after the name after, each with
// its latest version, its first summaryAliases aliases and api.DefaultAlias, and without calls.
// next is as in List.
func (r *Functions) Summaries(ctx context.Context, tenant, namespace, after string, limit int) (items []traffic.FunctionCalls, next string, err error) {
	found, next, err := r.List(ctx, tenant, namespace, after, limit)
	if err != nil || len(found) == 0 {
		return []traffic.FunctionCalls{}, next, err
	}
	pipe := r.s.rdb.Pipeline()
	latest, names := make([]*redis.StringCmd, len(found)), make([]*redis.StringSliceCmd, len(found))
	for i, f := range found {
		k := r.s.keys.function(tenant, namespace, f.Name)
		latest[i] = pipe.Get(ctx, k.versionSeq())
		names[i] = pipe.ZRangeByLex(ctx, k.aliases(), &redis.ZRangeBy{Min: "-", Max: "+", Count: summaryAliases})
	}
	if err := ExecOptional(ctx, pipe); err != nil {
		return nil, "", Failure(ctx, "list functions", err)
	}
	items = make([]traffic.FunctionCalls, len(found))
	var keys []string
	var owners []int
	for i, f := range found {
		items[i] = traffic.FunctionCalls{FunctionDetail: api.FunctionDetail{Function: f, Aliases: []api.Alias{}}}
		n, err := parseSeq(latest[i].Val())
		if err != nil {
			return nil, "", err
		}
		if n > 0 {
			items[i].LatestVersion = &n
		}
		shown := names[i].Val()
		if len(shown) == summaryAliases && shown[summaryAliases-1] < api.DefaultAlias {
			shown = append(shown, api.DefaultAlias) // it may not exist
		}
		for _, alias := range shown {
			keys, owners = append(keys, r.s.keys.function(tenant, namespace, f.Name).alias(alias)), append(owners, i)
		}
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, "", Failure(ctx, "list functions", err)
	}
	for i, raw := range raws {
		if raw == "" {
			continue // a write was interrupted between the alias and its index, or there is no default alias
		}
		a, err := Decode[api.Alias](raw)
		if err != nil {
			return nil, "", err
		}
		items[owners[i]].Aliases = append(items[owners[i]].Aliases, a)
	}
	return items, next, nil
}
