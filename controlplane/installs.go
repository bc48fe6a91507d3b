package controlplane

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
)

const (
	pathInstalls = pathTenant + "/installs"
	pathInstall  = pathInstalls + "/{install}"
)

// installBody is the body of a registration.
type installBody struct {
	Description string   `json:"description,omitempty" doc:"at most 1,024 characters"`
	Functions   []string `json:"functions,omitempty" doc:"those that may use it beside their own: <namespace>/<function>, or <namespace>/*"`
}

func (s *Server) routeInstalls(t storageRoutes) {
	one := map[string]any{contentTypeJSON: api.Install{}}
	t.add(documented{
		method: http.MethodGet, path: pathInstalls, id: "list-installs",
		summary: "List the installs that hold documents or are registered, by name",
		parameters: []*huma.Param{
			queryParameter("limit", "how many at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
			queryParameter("cursor", "next_cursor of the page before", &huma.Schema{Type: huma.TypeString}),
		},
		status: http.StatusOK, answer: map[string]any{contentTypeJSON: api.Page[api.Install]{}},
	}, s.listInstalls)
	t.add(documented{
		method: http.MethodPut, path: pathInstall, id: "put-install",
		summary:     "Register an install, or change who may use it",
		description: "A function's own install, fn.<namespace>.<function>, needs no registration.",
		request:     map[string]any{contentTypeJSON: installBody{}}, status: http.StatusOK, answer: one,
	}, s.putInstall)
	t.add(documented{
		method: http.MethodGet, path: pathInstall, id: "get-install", summary: "Read an install",
		status: http.StatusOK, answer: one,
	}, s.getInstall)
	t.add(documented{
		method: http.MethodDelete, path: pathInstall, id: "delete-install",
		summary: "Delete an install with all that it holds", status: http.StatusNoContent,
	}, s.deleteInstall)
}

func (s *Server) listInstalls(w http.ResponseWriter, r *http.Request, p storagePath) error {
	query, limit := r.URL.Query(), api.DefaultPageLimit
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > api.MaxPageLimit {
			return api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(api.MaxPageLimit))
		}
	}
	list := listScope("installs", p.tenant)
	after, err := list.open(query.Get("cursor"))
	if err != nil {
		return err
	}
	items, next, err := s.documents.Installs(r.Context(), p.tenant, after, limit)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, page(items, list.seal(next)))
	return nil
}

func (s *Server) putInstall(w http.ResponseWriter, r *http.Request, p storagePath) error {
	var body installBody
	if err := storageBody(w, r, &body); err != nil {
		return err
	}
	kept, err := s.documents.RegisterInstall(r.Context(), p.tenant, api.Install{Install: p.install, Description: body.Description, Functions: body.Functions})
	if err != nil {
		return err
	}
	s.writeJSON(w, r, kept)
	return nil
}

func (s *Server) getInstall(w http.ResponseWriter, r *http.Request, p storagePath) error {
	found, err := s.documents.Install(r.Context(), p.tenant, p.install)
	if err != nil {
		return err
	}
	s.writeJSON(w, r, found)
	return nil
}

func (s *Server) deleteInstall(w http.ResponseWriter, r *http.Request, p storagePath) error {
	if err := s.documents.DeleteInstall(r.Context(), p.tenant, p.install); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
