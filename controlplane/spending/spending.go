// Package spending serves what the jobs of a tenant spend on models, and the prices by which costs are
// computed. storage/spending keeps both.
package spending

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/spending"
)

const (
	pathUsage  = rest.PathTenant + "/usage/ai"
	pathPrices = rest.PathTenant + "/prices"
	// contentTypeCSV is the type of reports as tables.
	contentTypeCSV = "text/csv"
	// reportDays is the number of days that a report has by default.
	reportDays = 7
)

// API serves reports and prices. It is safe for concurrent use.
type API struct {
	store  *storage.Store
	prices *spending.Prices
	bodies rest.Decoder[agent.Price]
}

// New returns the API of the spending that store keeps.
func New(store *storage.Store, prices *spending.Prices) *API {
	return &API{store: store, prices: prices, bodies: rest.NewDecoder[agent.Price]()}
}

type tenantInput struct{ rest.TenantPath }

type pricesOutput struct {
	Body struct {
		Prices []agent.Price `json:"prices"`
	}
}

type deletePriceInput struct {
	rest.TenantPath
	Model    string `query:"model" required:"true" maxLength:"128"`
	Provider string `query:"provider" maxLength:"128" doc:"the provider of the price; left out, the price for all providers"`
}

// Endpoints returns the declarations of all routes of the API.
func (a *API) Endpoints() []rest.Endpoint {
	tenant := []*huma.Param{rest.PathParameter("tenant", rest.TenantName("").Schema(nil))}
	text := &huma.Schema{Type: huma.TypeString}
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathUsage, Action: access.UsageRead, Extent: rest.HandlerNamespace,
			ID: "get-ai-usage", Tag: "tenants", Summary: "Read what jobs have spent on models, by day and other groups",
			Description: "The days are those of the reports in UTC, at most 100 of the last 400. Sums of tags have no queue, function, provider and model. " +
				"A key of one namespace gets the sums of that namespace.",
			Parameters: append(tenant,
				rest.QueryParameter("from", "the first day in UTC, such as 2026-11-19; by default six days before the last one", text),
				rest.QueryParameter("to", "the last day in UTC; by default today", text),
				rest.QueryParameter("by", "the groups, separated by commas: "+strings.Join(agent.Groups, ", ")+"; by default day", text),
				rest.QueryParameter("namespace", "only jobs of this namespace", text),
				rest.QueryParameter("queue", "only jobs of queues of this name", text),
				rest.QueryParameter("function", "only jobs that run functions of this name", text),
				rest.QueryParameter("provider", "only this provider", text),
				rest.QueryParameter("model", "only this model", text),
				rest.QueryParameter("tag", "only jobs with this tag", text),
				rest.QueryParameter("tag_value", "and this value of it", text),
				rest.QueryParameter("format", "csv for a table with a header", &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}}),
			),
			Answer: rest.Content{rest.ContentTypeJSON: agent.Report{}, contentTypeCSV: nil},
		}, a.report),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathPrices, Action: access.UsageRead,
			ID: "list-prices", Tag: "tenants", Summary: "List the prices of models",
		}, a.list),
		rest.Handle(rest.Route{
			Method: http.MethodPut, Path: pathPrices, Action: access.PriceWrite,
			ID: "put-price", Tag: "tenants", Summary: "Set the price of a model",
			Description: "For a million tokens of each kind, in dollars. It applies to usage without a cost that is reported from then on, on all replicas within 5 s. At most 1,000 prices.",
			Parameters:  tenant, Request: rest.JSON(agent.Price{}), Answer: rest.JSON(agent.Price{}),
		}, a.put),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathPrices, Action: access.PriceWrite,
			ID: "delete-price", Tag: "tenants", Summary: "Delete the price of a model; a price that does not exist is deleted, too",
		}, a.delete),
	}
}

// dayOf returns a date as the number of days since 1970, or the default for "".
func dayOf(parameter, date string, otherwise int64) (int64, error) {
	if date == "" {
		return otherwise, nil
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil || at.Unix() < 0 {
		return 0, api.InvalidField(parameter, "must be a date such as 2026-11-25")
	}
	return spending.Day(at.UnixMilli()), nil
}

// report answers with a report, as JSON or as a table. Errors: CodeInvalid.
func (a *API) report(w http.ResponseWriter, r *http.Request) error {
	ctx, tenant, values := r.Context(), rest.PathParam(r, "tenant"), r.URL.Query()
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	to, err := dayOf("to", values.Get("to"), spending.Day(a.store.NowMS()))
	if err != nil {
		return err
	}
	from, err := dayOf("from", values.Get("from"), to-reportDays+1)
	if err != nil {
		return err
	}
	by := []string{"day"}
	if values.Has("by") {
		by = strings.Split(values.Get("by"), ",")
	}
	out, err := spending.Report(ctx, a.store, tenant, spending.Query{
		From: from, To: to, By: by, Namespaces: rest.CallerOf(ctx).EntersNamespace,
		Group: agent.Group{
			Namespace: values.Get("namespace"), Queue: values.Get("queue"), Function: values.Get("function"),
			Provider: values.Get("provider"), Model: values.Get("model"), Tag: values.Get("tag"), TagValue: values.Get("tag_value"),
		},
	})
	if err != nil {
		return err
	}
	switch values.Get("format") {
	case "", "json":
		return rest.WriteJSON(w, r, http.StatusOK, out)
	case "csv":
		return writeCSV(w, out)
	}
	return api.InvalidField("format", "must be json or csv")
}

// writeCSV answers with the groups of a report as a table with a header.
func writeCSV(w http.ResponseWriter, report *agent.Report) error {
	var b bytes.Buffer
	table := csv.NewWriter(&b)
	header := append(agent.Columns(), "input_tokens", "output_tokens", "cache_creation_tokens", "cache_read_tokens", "cost_usd", "entries", "unpriced")
	rows := [][]string{header}
	for i := range report.Groups {
		g := &report.Groups[i]
		row := g.Names()
		for _, n := range g.Numbers() {
			cell := strconv.FormatInt(n, 10)
			if header[len(row)] == "cost_usd" {
				cell = g.CostUSD.String()
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	if err := table.WriteAll(rows); err != nil {
		return api.Wrap(api.CodeInternal, err, "encode a table")
	}
	if err := rest.HoldAnswer(w, b.Len()); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentTypeCSV)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b.Bytes()) // the client may have gone
	return nil
}

// list answers with the prices of a tenant.
func (a *API) list(ctx context.Context, in *tenantInput) (*pricesOutput, error) {
	found, err := a.prices.List(ctx, string(in.Tenant))
	if err != nil {
		return nil, err
	}
	out := &pricesOutput{}
	out.Body.Prices = found
	return out, nil
}

// put sets a price. Errors: CodeInvalid, CodeCapacityLimit.
func (a *API) put(w http.ResponseWriter, r *http.Request) error {
	tenant := rest.PathParam(r, "tenant")
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	raw, err := rest.ReadBody(w, r, api.MaxRequestBytes)
	if err != nil {
		return err
	}
	price, err := a.bodies.Decode(raw)
	if err != nil {
		return err
	}
	if err := a.prices.Put(r.Context(), tenant, price); err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, price)
}

// delete deletes a price.
func (a *API) delete(ctx context.Context, in *deletePriceInput) (*struct{}, error) {
	_, err := a.prices.Delete(ctx, string(in.Tenant), in.Provider, in.Model)
	return nil, err
}
