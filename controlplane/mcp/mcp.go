// Package mcp serves the Model Context Protocol at /v1/mcp, by streamable HTTP: agents list, read,
// publish, test, invoke and roll back functions, read logs, and enqueue and inspect jobs. Each
// published function with an input_schema is a tool of its own.
//
// A tool calls routes of the REST API in this process, with the key of the caller (call.go). It
// therefore has the authorization, the limits, the audit and the errors of these routes, and none of
// its own. The only exception is the list of the functions that are tools (functions.go).
//
//	mcp.go        the route: one message in a request, and its answer
//	message.go    reads and bounds a message before the SDK sees it
//	serve.go      answers the methods: tools and resources
//	call.go       requests of the REST API
//	tools.go      the table of the tools of the platform; tools_….go, their calls
//	functions.go  functions as tools
//	cancel.go     notifications/cancelled, on any replica
//	progress.go   notifications/progress
//	resources.go  sources, logs and pages of the documentation
//
// The server keeps no sessions. Any replica answers any request, each of which is authenticated, so
// a revoked key ends at the next request. The id that initialize returns only names the scope of the
// request ids that a client can cancel.
package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage"
)

// Path is the path of the endpoint.
const Path = "/v1/mcp"

// headerSession is the header with the id that initialize returns.
const headerSession = "Mcp-Session-Id"

// Authorizer decides who may run a function. invoker.Invoker implements it.
type Authorizer interface {
	// Authorize returns the error with which an invocation would be refused; nothing runs.
	Authorize(ctx context.Context, inv *api.Invocation) error
}

// Config is the environment of an API. All fields are required.
type Config struct {
	Store  *storage.Store
	Engine Authorizer
	// REST returns the handler of the whole API, which exists when requests arrive.
	REST   func() http.Handler
	Logger *zap.Logger
	// Version is that of the program.
	Version string
}

// API serves the endpoint. It is safe for concurrent use.
type API struct {
	rest      func() http.Handler
	log       *zap.Logger
	functions *catalogue
	pages     func() *library // read when the first resource is asked for
	running   *calls
	streamed  http.Handler // answers tools/call, which may report progress
	plain     http.Handler // answers the other methods
}

// New returns the API. Its OnChange must receive the notices of the store.
func New(cfg Config) *API {
	a := &API{
		rest: cfg.REST, log: cfg.Logger, functions: newCatalogue(cfg.Store, cfg.Engine),
		pages: sync.OnceValue(newLibrary), running: newCalls(cfg.Store),
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "code-sous", Title: "code-sous", Version: cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
	})
	server.AddReceivingMiddleware(a.methods)
	handler := func(asJSON bool) http.Handler {
		return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
			Stateless: true, JSONResponse: asJSON, MaxRequestBodyBytes: -1, PropagateRequestCancellation: true,
			DisableLocalhostProtection: true, // rest has checked Host and Origin
			Logger:                     slog.New(slog.DiscardHandler),
		})
	}
	a.streamed, a.plain = handler(false), handler(true)
	return a
}

// instructions are for the model.
const instructions = "code-sous runs functions in JavaScript and TypeScript, and job queues. " +
	"sous_* tools manage the platform; the other tools are functions of the namespace. " +
	"The resources sous://docs/... are the documentation: read sous://docs/functions before you write a function."

// Endpoints declares what the API serves.
func (a *API) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodPost, Path: Path, Action: access.AnyKey, Extent: rest.NoNamespace,
			ID: "mcp", Tag: "service", Summary: "Send a message of the Model Context Protocol",
			Description: "Streamable HTTP without sessions: a request carries one JSON-RPC message of at most 4 MiB. " +
				"Calls of tools are answered as server-sent events, other requests as JSON, notifications with 202. " +
				"Tools call the routes of this API with the key of the caller. docs/mcp.md lists them.",
			Parameters: []*huma.Param{
				rest.QueryParameter("tenant", "the tenant of the tools; default that of the key", rest.TenantName("").Schema(nil)),
				rest.QueryParameter("namespace", "the namespace whose functions are tools; default that of the key, else default", rest.ResourceName("").Schema(nil)),
				rest.HeaderParameter(headerSession, "the id that the answer to initialize has, so that the request can be cancelled"),
				rest.HeaderParameter(headerVersion, "the version of the protocol that was negotiated"),
			},
			Request: rest.Content{rest.ContentTypeJSON: map[string]any{}},
			Answer:  rest.Content{rest.ContentTypeJSON: map[string]any{}, rest.ContentTypeEvents: nil},
			Also: []rest.Answer{
				{Status: http.StatusAccepted, Description: "a notification was received"},
			},
		}, a.serve),
	}
}

// serve answers one message.
func (a *API) serve(w http.ResponseWriter, r *http.Request) error {
	if err := acceptable(r); err != nil {
		return err
	}
	s, err := a.newSession(w, r)
	if err != nil {
		return err
	}
	body, err := rest.ReadBody(w, r, maxMessage)
	if err != nil {
		return err
	}
	// The SDK holds copies of the message.
	if err := rest.HoldAnswer(w, 3*len(body)); err != nil {
		return err
	}
	m, err := readMessage(body)
	var unsupported *unsupportedError
	switch {
	case errors.As(err, &unsupported):
		return unsupported.write(w, r)
	case err != nil:
		return err
	}
	s.message = m
	if m.method == methodCancelled {
		a.running.cancel(r.Context(), s.identity(m.cancels))
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	rest.OwnWait(w)() // the requests of tools are counted for themselves
	if m.method == methodInitialize {
		w.Header().Set(headerSession, rand.Text())
	}
	r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
	r.Body = io.NopCloser(bytes.NewReader(m.text))
	if m.method == methodCallTool {
		a.streamed.ServeHTTP(w, r)
		return nil
	}
	a.plain.ServeHTTP(w, r)
	return nil
}

// acceptable refuses requests of another content type, and those that do not accept both kinds of
// answers. It adds the headers that a request leaves out, which the SDK requires. Errors: CodeMediaType,
// CodeInvalid.
func acceptable(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	contentType, _, err := mime.ParseMediaType(given)
	if given != "" && (err != nil || contentType != rest.ContentTypeJSON) {
		return api.Errorf(api.CodeMediaType, "a message is %s", rest.ContentTypeJSON)
	}
	accepts := strings.Join(r.Header.Values("Accept"), ",")
	for _, want := range []struct{ exact, kind string }{{rest.ContentTypeJSON, "application/*"}, {rest.ContentTypeEvents, "text/*"}} {
		if accepts != "" && !strings.Contains(accepts, want.exact) && !strings.Contains(accepts, want.kind) && !strings.Contains(accepts, "*/*") {
			return api.InvalidField("Accept", "must admit both "+rest.ContentTypeJSON+" and "+rest.ContentTypeEvents)
		}
	}
	r.Header["Content-Type"] = []string{rest.ContentTypeJSON}
	r.Header["Accept"] = []string{rest.ContentTypeJSON + ", " + rest.ContentTypeEvents}
	return nil
}

// OnChange takes a notice of the store.
func (a *API) OnChange(change storage.Change) { a.running.onChange(change) }
