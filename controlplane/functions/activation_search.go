package functions

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/rest"
)

// ActivationSearch has the filters that only the mirror has. It is comparable: its zero value
// leaves the list to the store.
type ActivationSearch struct {
	Version     int64  `query:"version" minimum:"0" doc:"of this version"`
	Q           string `query:"q" maxLength:"1024" doc:"full-text query: words, phrases in quotes, prefix*, AND, OR, NOT, parentheses, and column:word for one of the columns id, function, error, result"`
	Error       string `query:"error" maxLength:"512" doc:"whose error has this text"`
	ErrorType   string `query:"error_type" maxLength:"64" doc:"whose error has this type"`
	Job         string `query:"job" maxLength:"36" doc:"that this job ran"`
	Request     string `query:"request_id" maxLength:"64" doc:"of this request"`
	EndedFromMS int64  `query:"ended_from_ms" minimum:"0" doc:"end_ms at or after"`
	EndedToMS   int64  `query:"ended_to_ms" minimum:"0" doc:"end_ms before"`
	DurationMS  int64  `query:"min_duration_ms" minimum:"0" doc:"duration_ms at least"`
	Sort        string `query:"sort" enum:"created,ended,duration,rank" doc:"the order; ended leaves out those that run, rank needs q"`
	Order       string `query:"order" enum:"asc,desc" doc:"default: desc"`
	Count       bool   `query:"count" doc:"also count the activations, up to 10,000"`
}

// searchActivations answers with a page from the mirror.
func (a *API) searchActivations(ctx context.Context, in *listActivationsInput, namespace string) (*activationPageOutput, error) {
	q := search.Activations{
		Namespace: namespace, ID: in.ID, Version: in.Version, ErrorType: in.ErrorType, Error: in.Error, Job: in.Job, Request: in.Request,
		Started: search.Range{FromMS: in.FromMS, ToMS: in.ToMS}, Ended: search.Range{FromMS: in.EndedFromMS, ToMS: in.EndedToMS}, DurationMS: in.DurationMS,
		Words: in.Q, Order: search.Order{Sort: in.Sort, Ascending: in.Order == "asc", Count: in.Count},
	}
	if in.Function != "" {
		q.Functions = []string{string(in.Function)}
	}
	if in.Status != "" {
		q.Statuses = []api.Status{api.Status(in.Status)}
	}
	if in.Trigger != "" {
		q.Triggers = []string{in.Trigger}
	}
	scoped := q
	scoped.Count = false // a page without the count continues one with it
	text, err := api.EncodeJSON(scoped)
	if err != nil {
		return nil, err
	}
	list := rest.ListScope("search-activations", string(in.Tenant), string(text))
	position, err := list.Open(in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := a.searcher.Activations(ctx, string(in.Tenant), &q, position, in.Limit)
	if err != nil {
		return nil, err
	}
	state, err := a.searcher.State()
	if err != nil {
		return nil, err
	}
	page := rest.NewPage(found.Items, list.Seal(found.Next))
	return &activationPageOutput{search.Results[api.Activation]{Items: page.Items, NextCursor: page.NextCursor, Count: found.Count, Mirror: state}}, nil
}
