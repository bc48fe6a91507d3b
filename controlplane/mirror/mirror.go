// Package mirror serves the state of the mirror of the replica that answers, to administrators of the
// platform. Package storage/mirror keeps it.
package mirror

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/mirror"
)

const pathMirror = "/v1/admin/mirror"

// API serves the state of a mirror. It is safe for concurrent use.
type API struct{ mirror *mirror.Mirror }

// New returns the API of m, nil on a replica without a mirror.
func New(m *mirror.Mirror) *API { return &API{m} }

type statusOutput struct{ Body mirror.Status }

// Endpoints declares the routes.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathMirror, Action: access.MirrorRead, Extent: rest.Platform,
			ID: "get-mirror", Tag: "mirror", Summary: "Read the state of the mirror of the replica that answers", Description: "For keys of all tenants only.",
		}, a.getMirror),
		rest.Operation(rest.Route{
			Method: http.MethodPost, Path: pathMirror + ":rebuild", Action: access.MirrorRebuild, Extent: rest.Platform,
			ID: "rebuild-mirror", Tag: "mirror", Summary: "Rebuild the mirror of the replica that answers", Status: http.StatusAccepted,
			Description: "It serves the rows that it has meanwhile. GET shows the progress. For keys of all tenants only.",
		}, a.rebuildMirror),
	}
}

// getMirror answers with the state, also on a replica without a mirror.
func (a *API) getMirror(context.Context, *struct{}) (*statusOutput, error) {
	return &statusOutput{a.mirror.Status()}, nil
}

// rebuildMirror asks for a rebuild. Errors: CodeMirrorUnavailable without a mirror.
func (a *API) rebuildMirror(context.Context, *struct{}) (*statusOutput, error) {
	if a.mirror == nil {
		return nil, api.Errorf(api.CodeMirrorUnavailable, "this replica keeps no mirror of jobs and activations; start one with the role mirror")
	}
	a.mirror.Rebuild()
	return &statusOutput{a.mirror.Status()}, nil
}
