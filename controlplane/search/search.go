// Package search serves searches of jobs across queues, from the mirror of the replica. A key that is
// limited to a namespace finds only records of that.
package search

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
)

const pathJobs = rest.PathTenant + "/jobs"

// API serves searches. It is safe for concurrent use.
type API struct{ searcher *mirrorsearch.Searcher }

// New returns the API of a searcher.
func New(searcher *mirrorsearch.Searcher) *API { return &API{searcher} }

// shortPages describes pages in the document.
const shortPages = "A page examines a bounded number of records: it may be short, even empty, and still have a next_cursor. " +
	"The answer comes from the mirror of the replica, which may be behind the store by mirror.lag_ms, and lacks records while it is being rebuilt. A search takes at most 2 s."

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	integer := func(doc string, standard int) *huma.Param {
		return rest.QueryParameter("limit", doc, &huma.Schema{Type: huma.TypeInteger, Default: standard})
	}
	return append([]rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathJobs, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "search-jobs", Tag: "jobs", Summary: "Search the jobs of all queues, newest first unless sorted otherwise",
			Description: "Jobs must match all parameters. tag.KEY=VALUE selects by a tag. Of the attempts and errors a job has only the last error. " + shortPages,
			Parameters:  Parameters(search.JobParameters(), integer("the maximum number of items", api.DefaultPageLimit), rest.QueryParameter("cursor", "next_cursor of the previous page", &huma.Schema{Type: huma.TypeString})),
			QueryPrefix: search.TagPrefix,
			Answer:      rest.JSON(search.Results[api.Job]{}),
		}, a.searchJobs),
	}, a.seriesEndpoints()...)
}

// Parameters returns the path parameter of the tenant and the query parameters described, followed by
// more.
func Parameters(described []search.Parameter, more ...*huma.Param) []*huma.Param {
	out := []*huma.Param{rest.PathParameter("tenant", rest.TenantName("").Schema(nil))}
	for _, p := range described {
		schema := &huma.Schema{Type: huma.TypeString}
		switch {
		case p.Number:
			schema.Type = huma.TypeInteger
		case p.Boolean:
			schema.Type = huma.TypeBoolean
		}
		for _, value := range p.Enum {
			schema.Enum = append(schema.Enum, value)
		}
		if p.List {
			schema = &huma.Schema{Type: huma.TypeArray, Items: schema}
		}
		out = append(out, rest.QueryParameter(p.Name, p.Doc, schema))
	}
	return append(out, more...)
}

// readJobs reads the tenant and the query of a request for jobs. Errors: CodeInvalid,
// CodeValidationName, CodeAuthzDenied.
func readJobs(r *http.Request) (tenant string, q search.Jobs, err error) {
	tenant = rest.PathParam(r, "tenant")
	if err := api.ValidateTenant(tenant); err != nil {
		return tenant, q, err
	}
	q, err = search.ParseJobs(r.URL.Query())
	if err != nil {
		return tenant, q, err
	}
	q.Namespace, err = enter(r, q.Namespace)
	return tenant, q, err
}

// enter returns the namespace that a request selects: the named one, or that of the caller's key, ""
// for all. Errors: CodeValidationName, CodeAuthzDenied.
func enter(r *http.Request, namespace string) (string, error) {
	caller := rest.CallerOf(r.Context())
	if namespace == "" {
		return caller.Namespace, nil
	}
	if err := api.ValidateName("namespace", namespace); err != nil {
		return "", err
	}
	return namespace, caller.NeedNamespace(namespace)
}

// readLimit reads a limit of at most most, 0 without one. Errors: CodeInvalid.
func readLimit(query url.Values, name string, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, api.InvalidField(name, "must be from 1 to "+strconv.Itoa(most))
	}
	return n, nil
}

// searchJobs answers with a page of jobs. The query is part of the cursor's scope.
func (a *API) searchJobs(w http.ResponseWriter, r *http.Request) error {
	tenant, q, err := readJobs(r)
	if err != nil {
		return err
	}
	limit, err := readLimit(r.URL.Query(), "limit", api.MaxPageLimit)
	if err != nil {
		return err
	}
	counted := q.Count
	q.Count = false // a page without the count continues one with it
	list := rest.ListScope("search-jobs", tenant, q.Values().Encode())
	q.Count = counted
	position, err := list.Open(r.URL.Query().Get("cursor"))
	if err != nil {
		return err
	}
	found, err := a.searcher.Jobs(r.Context(), tenant, &q, position, limit)
	if err != nil {
		return err
	}
	page, err := Page(a.searcher, found, list)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, page)
}

// Page returns the page of a result.
func Page[T any](s *mirrorsearch.Searcher, found *mirrorsearch.Result[T], list rest.Scope) (*search.Results[T], error) {
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	plain := rest.NewPage(found.Items, list.Seal(found.Next))
	return &search.Results[T]{Items: plain.Items, NextCursor: plain.NextCursor, Count: found.Count, Mirror: state}, nil
}
