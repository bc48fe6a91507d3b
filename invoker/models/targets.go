package models

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage/providers"
)

// maxTurns bounds the routes whose turns are kept.
const maxTurns = 10_000

// target is a provider, which is no route, with a model.
type target struct {
	provider *ai.Provider
	model    string
}

// size is the estimate of a call's tokens.
type size struct{ input, output int64 }

// targets returns the targets of a call in the order in which they are tried. Errors:
// CodeHostAIProviderNotFound, CodeHostInvalidArgument, CodeStoreUnavailable.
func (c *Client) targets(ctx context.Context, tenant, name, model string, of size) ([]target, error) {
	view, err := c.registry.View(ctx, tenant)
	if err != nil {
		return nil, err
	}
	found, err := c.expand(ctx, view, tenant, name, model, of, 0)
	if api.ErrorCode(err) != api.CodeHostAIProviderNotFound || !c.registry.Older(view, lookAgain) {
		return found, err
	}
	c.registry.Forget(tenant) // it may have been created a moment ago
	view, err = c.registry.View(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return c.expand(ctx, view, tenant, name, model, of, 0)
}

// lookAgain is the age of a view from which on a provider that is missing in it is looked for again.
const lookAgain = 100 * time.Millisecond

// expand returns the targets of a provider or route. depth guards against a cycle that an interrupted
// write could have left.
func (c *Client) expand(ctx context.Context, view *providers.View, tenant, name, model string, of size, depth int) ([]target, error) {
	p := view.Providers[name]
	switch {
	case p == nil:
		return nil, api.Errorf(api.CodeHostAIProviderNotFound, "the provider %q does not exist", name)
	case p.Kind != ai.KindRoute:
		t, err := targetOf(p, model)
		return []target{t}, err
	case depth >= ai.MaxDepth:
		return nil, api.Errorf(api.CodeHostAIProviderNotFound, "the route %q leads to too many routes", name)
	}
	groups := make([][]target, 0, len(p.Targets))
	for _, t := range p.Targets {
		found, err := c.expand(ctx, view, tenant, t.Provider, cmp.Or(t.Model, model), of, depth+1)
		if err != nil {
			return nil, err
		}
		groups = append(groups, found)
	}
	c.order(ctx, tenant, p, groups, of)
	return distinct(slices.Concat(groups...)), nil
}

// distinct returns targets without those that occur before: the retries of one are its own.
func distinct(targets []target) []target {
	seen := make(map[target]bool, len(targets))
	return slices.DeleteFunc(targets, func(t target) bool {
		again := seen[t]
		seen[t] = true
		return again
	})
}

// targetOf returns a provider with the model of a call, or with its default.
func targetOf(p *ai.Provider, model string) (target, error) {
	switch {
	case model == "" && len(p.Models) == 0:
		return target{}, invalid("the model is missing: the provider %s has no default", p.Name)
	case model == "":
		model = p.Models[0]
	case len(p.Models) > 0 && !slices.Contains(p.Models, model):
		return target{}, invalid("the provider %s does not allow the model %s", p.Name, model)
	}
	return target{p, model}, nil
}

// order brings the targets of a route into the order of its strategy.
func (c *Client) order(ctx context.Context, tenant string, route *ai.Provider, groups [][]target, of size) {
	first := 0
	switch route.Strategy {
	case ai.StrategyLeastCost:
		c.byCost(ctx, tenant, groups, of)
	case ai.StrategyRoundRobin:
		first = c.turn(tenant+"/"+route.Name, len(groups))
	case ai.StrategyWeighted:
		first = c.weighted(route.Targets)
	}
	rotated := append(slices.Clone(groups[first:]), groups[:first]...)
	copy(groups, rotated)
}

// turn returns the next turn of a route.
func (c *Client) turn(key string, count int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.turns) >= maxTurns {
		clear(c.turns)
	}
	next := c.turns[key] % count
	c.turns[key] = next + 1
	return next
}

// weighted draws a target by weights.
func (c *Client) weighted(targets []ai.RouteTarget) int {
	sum := 0
	for _, t := range targets {
		sum += cmp.Or(t.Weight, 1)
	}
	at := c.draw(sum)
	for i, t := range targets {
		at -= cmp.Or(t.Weight, 1)
		if at < 0 {
			return i
		}
	}
	return 0
}

// byCost sorts targets by the cost of a call of the size. Those without a price are last. If the
// prices cannot be read, the order stays.
func (c *Client) byCost(ctx context.Context, tenant string, groups [][]target, of size) {
	if c.prices == nil {
		return
	}
	costs := make(map[target]agent.USD, len(groups))
	for _, g := range groups {
		entries := []agent.Usage{{Provider: g[0].provider.Name, Model: g[0].model, InputTokens: min(of.input, agent.MaxTokens), OutputTokens: min(of.output, agent.MaxTokens)}}
		priced, err := c.prices.Apply(ctx, tenant, entries)
		costs[g[0]] = agent.MaxUSD
		if err != nil {
			c.logger.Warn("the targets of a route are not sorted by cost: the prices could not be read", zap.String("tenant", tenant), zap.Error(err))
			return
		}
		if priced[0].CostUSD != nil {
			costs[g[0]] = *priced[0].CostUSD
		}
	}
	slices.SortStableFunc(groups, func(a, b []target) int { return cmp.Compare(costs[a[0]], costs[b[0]]) })
}
