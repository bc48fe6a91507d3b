// Package console serves the web interface of the platform, and the sessions of the people who use
// it.
//
// The interface is built from the folder console of the repository (see tools/console) and embedded
// in the program; embedded.go has the archive, files.go serves its scripts and styles, and page.go
// the document that begins with them. It calls the routes of the API as any other client does, but
// below /console/api and with a session in place of a key: front.go rewrites these requests, and
// session.go creates and ends sessions.
//
// What keeps a session from others, on an origin that the functions of tenants share:
//
//	HttpOnly, SameSite=Strict  no script reads the cookie, no page of another site sends it
//	no Path                    the browser sends it below /console/api only, to no function
//	sameOrigin                 no page of another origin calls, also none of a function, whose
//	                           answers are sandboxed (controlplane/web) and have an opaque origin
//	HeaderToken                a request proves that its page could read an answer of the session
//	loader, policyFormat       the page runs the console's scripts only, and Trusted Types refuse
//	                           HTML made of texts
package console

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathRoot    = "/"
	pathEnter   = "/console"
	pathPages   = "/console/*"
	pathSession = apiPrefix + "/session"
)

// Sessions keeps sessions, which it knows by digests in hexadecimal.
type Sessions interface {
	access.SessionSource
	Create(ctx context.Context, key, session string, now, ends time.Time) error
	Delete(ctx context.Context, key, session string) error
}

// Config configures a Console.
type Config struct {
	// Version is the version of the server.
	Version string
	// Clock dates sessions.
	Clock func() time.Time
	// Unconfined tells that the pages of functions are not sandboxed: there is no console then.
	Unconfined bool
}

// Console serves the interface. It is safe for concurrent use.
type Console struct {
	auth     *access.Authenticator
	sessions Sessions
	cfg      Config
	files    *files // nil if none are embedded
	pages    []page // by depth
}

// New returns a console whose sessions auth accepts from now on. The error is that of a damaged
// archive.
func New(auth *access.Authenticator, sessions Sessions, cfg Config) (*Console, error) {
	all, err := open(archive)
	if err != nil {
		return nil, err
	}
	pages, err := newPages(all)
	if err != nil {
		return nil, err
	}
	if err := auth.UseSessions(sessions); err != nil {
		return nil, err
	}
	return &Console{auth: auth, sessions: sessions, cfg: cfg, files: all, pages: pages}, nil
}

// Endpoints declares the routes of the console. They need no key; the routes of a session examine it
// themselves.
func (c *Console) Endpoints() []rest.Endpoint {
	public := func(method, path string, handle rest.Handler) rest.Endpoint {
		return rest.Handle(rest.Route{Method: method, Path: path, Action: access.Public, Extent: rest.NoNamespace}, handle)
	}
	return []rest.Endpoint{
		public(http.MethodGet, pathRoot, root),
		public(http.MethodGet, pathEnter, enter),
		public(http.MethodGet, pathPages, c.page),
		public(http.MethodGet, pathSession, c.read),
		public(http.MethodPost, pathSession, c.create),
		public(http.MethodDelete, pathSession, c.remove),
	}
}

// page answers with a file of the console, or with the document for all other addresses: the script
// shows the view that the address names.
func (c *Console) page(w http.ResponseWriter, r *http.Request) error {
	at := strings.TrimPrefix(r.URL.Path, pathEnter+"/")
	if strings.HasPrefix(at, "assets/") && c.files != nil {
		return c.files.serve(w, r, at)
	}
	depth := strings.Count(at, "/")
	if depth >= len(c.pages) || strings.HasPrefix(at, "api/") {
		return api.Errorf(api.CodeRouteNotFound, "the console has no view at this address; it begins at %s/", pathEnter)
	}
	c.pages[depth].serve(w, r)
	return nil
}
