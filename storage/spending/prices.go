package spending

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/maypok86/otter/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/storage"
)

// Prices reads and writes the prices of tenants. They are one hash, cs:prices:t, of which a field is
// a provider and a model, escaped as in a row. It is safe for concurrent use.
type Prices struct {
	store *storage.Store
	cache *otter.Cache[string, cached]
}

// cached are the prices of a tenant by field, as read at atMS.
type cached struct {
	atMS   int64
	prices map[string]agent.Price
}

// Prices are cached for cachedMS: a change of another replica applies after that.
const (
	cachedMS      = 5_000
	cachedTenants = 1000
)

// NewPrices returns the prices in store.
func NewPrices(store *storage.Store) (*Prices, error) {
	cache, err := otter.New(&otter.Options[string, cached]{MaximumSize: cachedTenants})
	if err != nil {
		return nil, fmt.Errorf("spending: %w", err)
	}
	return &Prices{store: store, cache: cache}, nil
}

func priceField(provider, model string) string { return fieldOf("p", provider, model) }

// read reads the prices of a tenant, by field.
func (p *Prices) read(ctx context.Context, tenant string) (map[string]agent.Price, error) {
	stored, err := p.store.Client().HGetAll(ctx, p.store.JobKeys(tenant).Prices()).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read prices", err)
	}
	out := make(map[string]agent.Price, len(stored))
	for field, text := range stored {
		var price agent.Price
		if err := json.Unmarshal([]byte(text), &price); err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "decode a price")
		}
		out[field] = price
	}
	return out, nil
}

// List returns the prices of a tenant, by provider and model. Errors: CodeStoreUnavailable.
func (p *Prices) List(ctx context.Context, tenant string) ([]agent.Price, error) {
	found, err := p.read(ctx, tenant)
	if err != nil {
		return nil, err
	}
	out := make([]agent.Price, 0, len(found))
	for _, price := range found {
		out = append(out, price)
	}
	slices.SortFunc(out, func(a, b agent.Price) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return out, nil
}

// Put sets the price of a model. Usage that was reported before keeps its cost. Errors: CodeInvalid,
// CodeCapacityLimit for more than agent.MaxPrices, CodeStoreUnavailable.
func (p *Prices) Put(ctx context.Context, tenant string, price agent.Price) error {
	if field, rule := price.Check(); rule != "" {
		return api.InvalidField(field, rule)
	}
	key, field := p.store.JobKeys(tenant).Prices(), priceField(price.Provider, price.Model)
	pipe := p.store.Client().Pipeline()
	count, known := pipe.HLen(ctx, key), pipe.HExists(ctx, key, field)
	if _, err := pipe.Exec(ctx); err != nil {
		return storage.Failure(ctx, "read prices", err)
	}
	if count.Val() >= agent.MaxPrices && !known.Val() { // concurrent calls may add a few more
		return api.Errorf(api.CodeCapacityLimit, "limit of %d prices reached: delete one first", agent.MaxPrices)
	}
	raw, err := api.EncodeJSON(price)
	if err != nil {
		return api.Wrap(api.CodeInternal, err, "encode a price")
	}
	err = p.store.Client().HSet(ctx, key, field, string(raw)).Err()
	p.cache.Invalidate(tenant)
	return storage.Failure(ctx, "write a price", err)
}

// Delete deletes the price of a model and reports whether there was one. Errors:
// CodeStoreUnavailable.
func (p *Prices) Delete(ctx context.Context, tenant, provider, model string) (bool, error) {
	n, err := p.store.Client().HDel(ctx, p.store.JobKeys(tenant).Prices(), priceField(provider, model)).Result()
	p.cache.Invalidate(tenant)
	return n > 0, storage.Failure(ctx, "delete a price", err)
}

// Apply returns the entries of a report with the cost of those that have none, if there is a price:
// that of the provider and the model, else that of the model alone. It reads the store at most every
// few seconds. Errors: CodeStoreUnavailable.
func (p *Prices) Apply(ctx context.Context, tenant string, report []agent.Usage) ([]agent.Usage, error) {
	if !slices.ContainsFunc(report, func(u agent.Usage) bool { return u.CostUSD == nil }) {
		return report, nil
	}
	now := p.store.NowMS()
	known, ok := p.cache.GetIfPresent(tenant)
	if !ok || now-known.atMS >= cachedMS {
		prices, err := p.read(ctx, tenant)
		if err != nil {
			return nil, err
		}
		known = cached{now, prices}
		p.cache.Set(tenant, known)
	}
	out := slices.Clone(report)
	for i := range out {
		u := &out[i]
		if u.CostUSD != nil {
			continue
		}
		price, ok := known.prices[priceField(u.Provider, u.Model)]
		if !ok {
			price, ok = known.prices[priceField("", u.Model)]
		}
		if ok {
			cost := price.Cost(u)
			u.CostUSD = &cost
		}
	}
	return out, nil
}
