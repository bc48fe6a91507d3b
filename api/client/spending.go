package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/codesous/sous/api/agent"
)

// SpendingOptions select what a report counts. From and To are days as 2026-11-25 in UTC, "" for the last
// seven days. By has names of agent.Groups, none for the day. The names of Group that are not "" narrow
// the report; its Day does not count.
type SpendingOptions struct {
	From, To string
	By       []string
	agent.Group
}

// Spending returns what the jobs of the tenant have spent on models. CodeInvalid.
func (t *Tenant) Spending(ctx context.Context, o SpendingOptions) (agent.Report, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"from": o.From, "to": o.To, "by": strings.Join(o.By, ","), "namespace": o.Namespace, "queue": o.Queue, "function": o.Function,
		"provider": o.Provider, "model": o.Model, "tag": o.Tag, "tag_value": o.TagValue,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var out agent.Report
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("usage", "ai"), query: q}, nil, &out)
	return out, err
}

// Prices returns the prices of models, by provider and model.
func (t *Tenant) Prices(ctx context.Context) ([]agent.Price, error) {
	var out struct {
		Prices []agent.Price `json:"prices"`
	}
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("prices")}, nil, &out)
	return out.Prices, err
}

// PutPrice sets the price of a model. CodeInvalid, CodeCapacityLimit.
func (t *Tenant) PutPrice(ctx context.Context, price agent.Price) (agent.Price, error) {
	var out agent.Price
	_, err := t.c.call(ctx, &request{method: http.MethodPut, path: t.path("prices")}, price, &out)
	return out, err
}

// DeletePrice deletes the price of a model; provider is "" for that of all providers.
func (t *Tenant) DeletePrice(ctx context.Context, provider, model string) error {
	q := url.Values{"model": {model}}
	if provider != "" {
		q.Set("provider", provider)
	}
	_, err := t.c.call(ctx, &request{method: http.MethodDelete, path: t.path("prices"), query: q}, nil, nil)
	return err
}
