package search

import (
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const pathActivations = rest.PathTenant + "/activations"

// seriesEndpoints declares the routes of series.
func (a *API) seriesEndpoints() []rest.Endpoint {
	integer := func(name, doc string) *huma.Param {
		return rest.QueryParameter(name, doc, &huma.Schema{Type: huma.TypeInteger})
	}
	times := []*huma.Param{
		integer("from_ms", "the beginning of the time, in Unix milliseconds; required"),
		integer("to_ms", "the end of it; required"),
		integer("bucket_ms", "the time of a bucket; at most 500 of them. Default: a 60th"),
	}
	const description = "At most 50,000 records are examined, the newest ones; cut is true if there are more. The answer comes from the mirror of the replica. It takes at most 2 s."
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathJobs + ":series", Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "job-series", Tag: "jobs", Summary: "Figures for charts of the jobs that ended in a time: their states, times and errors",
			Description: "The filters are those of the search. " + description, Parameters: Parameters(search.JobSeriesParameters(), times...),
			QueryPrefix: search.TagPrefix, Answer: rest.JSON(search.Series{}),
		}, a.jobSeries),
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathActivations + ":series", Action: access.ActivationRead, Extent: rest.HandlerNamespace,
			ID: "activation-series", Tag: "activations", Summary: "Figures for charts of the activations that ended in a time: their statuses, times, errors and cost",
			Description: description, Parameters: Parameters(search.ActivationParameters(), times...), Answer: rest.JSON(search.Series{}),
		}, a.activationSeries),
	}
}

// seriesRange reads the time of a series. Errors: CodeInvalid.
func seriesRange(query url.Values) (r search.SeriesRange, err error) {
	for name, to := range map[string]*int64{"from_ms": &r.FromMS, "to_ms": &r.ToMS, "bucket_ms": &r.BucketMS} {
		*to, err = search.ParseNumber(name, query.Get(name))
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func (a *API) jobSeries(w http.ResponseWriter, r *http.Request) error {
	tenant, q, err := readJobs(r)
	if err != nil {
		return err
	}
	within, err := seriesRange(r.URL.Query())
	if err != nil {
		return err
	}
	series, err := a.searcher.JobSeries(r.Context(), tenant, q, within)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, series)
}

func (a *API) activationSeries(w http.ResponseWriter, r *http.Request) error {
	tenant := rest.PathParam(r, "tenant")
	if err := api.ValidateTenant(tenant); err != nil {
		return err
	}
	q, err := search.ParseActivations(r.URL.Query())
	if err != nil {
		return err
	}
	q.Namespace, err = enter(r, q.Namespace)
	if err != nil {
		return err
	}
	within, err := seriesRange(r.URL.Query())
	if err != nil {
		return err
	}
	series, err := a.searcher.ActivationSeries(r.Context(), tenant, q, within)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, series)
}
