// Package routes finds the targets of a provider or route: providers with a model, in the order in
// which they are tried.
package routes

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/storage/providers"
	"github.com/codesous/sous/storage/spending"
)

const (
	// maxTurns bounds the routes whose turns are kept.
	maxTurns = 10_000
	// lookAgain is the age of a view from which on a provider that is missing in it is looked for again.
	lookAgain = 100 * time.Millisecond
)

// Target is a provider, which is no route, with a model: "" if neither the call nor the provider names
// one.
type Target struct {
	Provider *ai.Provider
	Model    string
}

// Size is the estimate of a call's tokens.
type Size struct{ Input, Output int64 }

// Problem is the error of a provider that cannot be used. Missing is set if it does not exist.
type Problem struct {
	Missing bool
	text    string
}

func (p *Problem) Error() string { return p.text }

func missing(format string, args ...any) error { return &Problem{true, fmt.Sprintf(format, args...)} }

// Resolver finds targets. It is safe for concurrent use.
type Resolver struct {
	registry *providers.Registry
	prices   *spending.Prices
	logger   *zap.Logger

	mu    sync.Mutex
	turns map[string]int // of round robin routes, by tenant/name
}

// New returns a resolver of the providers in registry. Without prices, costs order nothing.
func New(registry *providers.Registry, prices *spending.Prices, logger *zap.Logger) *Resolver {
	return &Resolver{registry: registry, prices: prices, logger: logger, turns: map[string]int{}}
}

// Targets returns the targets of a provider or route in the order in which they are tried. model is the
// one that the call names, "" for none. Errors: a Problem, CodeStoreUnavailable.
func (r *Resolver) Targets(ctx context.Context, tenant, name, model string, of Size) ([]Target, error) {
	view, err := r.registry.View(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if view.Providers[name] == nil && r.registry.Older(view, lookAgain) {
		r.registry.Forget(tenant) // it may have been created a moment ago
		view, err = r.registry.View(ctx, tenant)
		if err != nil {
			return nil, err
		}
	}
	return r.expand(ctx, view, tenant, name, model, of, 0)
}

// expand returns the targets of a provider or route. depth guards against a cycle that an interrupted
// write could have left.
func (r *Resolver) expand(ctx context.Context, view *providers.View, tenant, name, model string, of Size, depth int) ([]Target, error) {
	p := view.Providers[name]
	switch {
	case p == nil:
		return nil, missing("the provider %q does not exist", name)
	case p.Kind != ai.KindRoute:
		t, err := targetOf(p, model)
		return []Target{t}, err
	case depth >= ai.MaxDepth:
		return nil, missing("the route %q leads to too many routes", name)
	}
	groups := make([][]Target, 0, len(p.Targets))
	for _, t := range p.Targets {
		found, err := r.expand(ctx, view, tenant, t.Provider, cmp.Or(t.Model, model), of, depth+1)
		if err != nil {
			return nil, err
		}
		groups = append(groups, found)
	}
	r.order(ctx, tenant, p, groups, of)
	return distinct(slices.Concat(groups...)), nil
}

// distinct returns targets without those that occur before: the retries of one are its own.
func distinct(targets []Target) []Target {
	seen := make(map[Target]bool, len(targets))
	return slices.DeleteFunc(targets, func(t Target) bool {
		again := seen[t]
		seen[t] = true
		return again
	})
}

// targetOf returns a provider with the model of a call, or with its default.
func targetOf(p *ai.Provider, model string) (Target, error) {
	switch {
	case len(p.Models) == 0:
	case model == "":
		model = p.Models[0]
	case !slices.Contains(p.Models, model):
		return Target{}, &Problem{false, fmt.Sprintf("the provider %s does not allow the model %s", p.Name, model)}
	}
	return Target{p, model}, nil
}

// order brings the targets of a route into the order of its strategy.
func (r *Resolver) order(ctx context.Context, tenant string, route *ai.Provider, groups [][]Target, of Size) {
	first := 0
	switch route.Strategy {
	case ai.StrategyLeastCost:
		r.byCost(ctx, tenant, groups, of)
	case ai.StrategyRoundRobin:
		first = r.turn(tenant+"/"+route.Name, len(groups))
	case ai.StrategyWeighted:
		first = weighted(route.Targets)
	}
	rotated := append(slices.Clone(groups[first:]), groups[:first]...)
	copy(groups, rotated)
}

// turn returns the next turn of a route.
func (r *Resolver) turn(key string, count int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) >= maxTurns {
		clear(r.turns)
	}
	next := r.turns[key] % count
	r.turns[key] = next + 1
	return next
}

// weighted draws a target by weights.
func weighted(targets []ai.RouteTarget) int {
	sum := 0
	for _, t := range targets {
		sum += cmp.Or(t.Weight, 1)
	}
	at := rand.IntN(sum) //nolint:gosec // it protects nothing
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
func (r *Resolver) byCost(ctx context.Context, tenant string, groups [][]Target, of Size) {
	if r.prices == nil {
		return
	}
	costs := make(map[Target]agent.USD, len(groups))
	for _, g := range groups {
		costs[g[0]] = agent.MaxUSD
		if g[0].Model == "" {
			continue
		}
		entries := []agent.Usage{{Provider: g[0].Provider.Name, Model: g[0].Model, InputTokens: min(of.Input, agent.MaxTokens), OutputTokens: min(of.Output, agent.MaxTokens)}}
		priced, err := r.prices.Apply(ctx, tenant, entries)
		if err != nil {
			r.logger.Warn("the targets of a route are not sorted by cost: the prices could not be read", zap.String("tenant", tenant), zap.Error(err))
			return
		}
		if priced[0].CostUSD != nil {
			costs[g[0]] = *priced[0].CostUSD
		}
	}
	slices.SortStableFunc(groups, func(a, b []Target) int { return cmp.Compare(costs[a[0]], costs[b[0]]) })
}
