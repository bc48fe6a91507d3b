package documents

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

// installBody is the body of a registration, which replaces the previous one as a whole.
type installBody struct {
	Description string   `json:"description,omitempty" doc:"at most 1,024 characters"`
	Functions   []string `json:"functions,omitempty" doc:"functions that may use the install beside their own: <namespace>/<function>, or <namespace>/*"`
}

func (a *API) installEndpoints() []rest.Endpoint {
	one := rest.JSON(api.Install{})
	return []rest.Endpoint{
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathInstalls, Action: access.StorageRead, Extent: rest.WholeTenant,
			ID: "list-installs", Summary: "List the installs that hold documents or are registered, by name",
			Parameters: []*huma.Param{
				rest.QueryParameter("limit", "how many at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
				rest.QueryParameter("cursor", "next_cursor of the previous page", &huma.Schema{Type: huma.TypeString}),
			},
			Answer: rest.JSON(api.Page[api.Install]{}),
		}, a.listInstalls),
		a.handle(rest.Route{
			Method: http.MethodPut, Path: pathInstall, Action: access.StorageAdmin, Extent: rest.WholeTenant,
			ID: "put-install", Summary: "Register an install, or change the functions that may use it",
			Description: "A function's own install, fn.<namespace>.<function>, needs no registration.",
			Request:     rest.JSON(installBody{}), Answer: one,
		}, a.putInstall),
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathInstall, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "get-install", Summary: "Read an install",
			Answer: one,
		}, a.getInstall),
		a.handle(rest.Route{
			Method: http.MethodDelete, Path: pathInstall, Action: access.StorageAdmin, Extent: rest.HandlerNamespace,
			ID: "delete-install", Summary: "Delete an install with all of its documents", Status: http.StatusNoContent,
		}, a.deleteInstall),
	}
}

// listInstalls answers with a page of a tenant's installs by name. Its cursor is that of the
// platform's lists, not of the document storage: it is not authenticated.
func (a *API) listInstalls(w http.ResponseWriter, r *http.Request, p path) error {
	query, limit := r.URL.Query(), api.DefaultPageLimit
	if text := query.Get("limit"); text != "" {
		var err error
		limit, err = strconv.Atoi(text)
		if err != nil || limit < 1 || limit > api.MaxPageLimit {
			return api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(api.MaxPageLimit))
		}
	}
	list := rest.ListScope("installs", p.tenant)
	after, err := list.Open(query.Get("cursor"))
	if err != nil {
		return err
	}
	items, next, err := a.documents.Installs(r.Context(), p.tenant, after, limit)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, rest.NewPage(items, list.Seal(next)))
}

// putInstall registers an install, or replaces its registration. Errors:
// CodeDocumentInvalid.
func (a *API) putInstall(w http.ResponseWriter, r *http.Request, p path) error {
	var body installBody
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	kept, err := a.documents.RegisterInstall(r.Context(), p.tenant, api.Install{Install: p.install, Description: body.Description, Functions: body.Functions})
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, kept)
}

// getInstall answers with an install. Errors: CodeDocumentNotFound if it has neither a
// document nor a registration.
func (a *API) getInstall(w http.ResponseWriter, r *http.Request, p path) error {
	found, err := a.documents.Install(r.Context(), p.tenant, p.install)
	if err != nil {
		return err
	}
	return rest.WriteJSON(w, r, http.StatusOK, found)
}

// deleteInstall deletes an install with all of its documents, step by step, as
// deleteDocumentNamespace does. Errors: CodeDocumentNotFound, CodeStoreConflict.
func (a *API) deleteInstall(w http.ResponseWriter, r *http.Request, p path) error {
	if err := a.documents.DeleteInstall(r.Context(), p.tenant, p.install); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
