package rest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/admission"
)

// Connection is the connection of a request, as the listener knows it. The listener closes
// connections whose bodies arrive slowly before others, and keeps some for probes and the API.
// It must be safe for concurrent use.
type Connection interface {
	// RequestBegins is called when a request of the connection has arrived, RequestEnds when it is
	// answered. Over HTTP/2 a connection has several at a time.
	RequestBegins()
	RequestEnds()
	// BodyBegins is called when the server begins to wait for the body of a request, or for the rest
	// of one that its handler did not read, BodyArrives for each part of n bytes, and BodyEnds when it
	// stops to. BodyEnds is not called if the connection has no other request before that.
	BodyBegins()
	BodyArrives(n int)
	BodyEnds()
	// Reserved reports whether the connection is one of those kept for probes and the API.
	Reserved() bool
}

type connectionKey struct{}

// WithConnection returns the context of the requests of a connection. The listener calls it in
// http.Server.ConnContext.
func WithConnection(ctx context.Context, c Connection) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// connectionOf returns the connection of a request, nil for none, as in tests.
func connectionOf(r *http.Request) Connection {
	c, _ := r.Context().Value(connectionKey{}).(Connection)
	return c
}

// The reasons of refusals, as values of the label "reason".
const (
	refusedLoad       = "load"       // too many requests in progress
	refusedBytes      = "bytes"      // the budget of bytes, or the caller's share of it
	refusedWaits      = "waits"      // too many requests that wait
	refusedRate       = "rate"       // too many requests of one client a second
	refusedConnection = "connection" // the connection is reserved for probes and the API
	refusedSlowBody   = "slow_body"  // the body did not arrive in time
)

// enter admits a request to this replica by its header alone, before the caller is known or
// any of the body is read: a refused request must cost little. Probes are always admitted. path is
// that of Direct.path: on the host of a function, /healthz is a path of the function.
// Errors: CodeOverloaded, CodeCapacityLimit.
func (s *Server) enter(w *trackedWriter, r *http.Request, path string) error {
	if path == PathHealthz || path == PathReadyz {
		return nil
	}
	if connection := connectionOf(r); connection != nil && connection.Reserved() {
		w.Header()["Connection"] = []string{"close"}
		if s.direct.takes(path) {
			return s.metrics.refuse(refusedConnection, reservedConnection())
		}
	}
	w.hold.Budget, w.hold.Remote = s.budget, r.RemoteAddr
	if err := w.hold.Room(); err != nil {
		return s.metrics.refuse(refusedBytes, err)
	}
	class := admission.Interactive
	if r.Method == http.MethodPost && isEnqueue(path) {
		class = admission.Background
	}
	if err := s.limiter.Enter(&w.ticket, class, s.tenantIn(path), admission.AddressOf(r.RemoteAddr)); err != nil {
		s.logOverload()
		return s.metrics.refuse(refusedLoad, err)
	}
	return nil
}

func reservedConnection() error {
	return api.Errorf(api.CodeOverloaded, "this replica has no connection left for requests other than probes and the API")
}

// isEnqueue reports whether a POST to path adds jobs to a queue.
func isEnqueue(path string) bool {
	return strings.HasSuffix(path, "/jobs") && strings.Contains(path, "/queues/")
}

// tenantIn returns the tenant that a path names, "" for none. The caller may have no right to
// it.
func (s *Server) tenantIn(path string) string {
	rest, ok := strings.CutPrefix(path, tenantsPrefix)
	if !ok && s.direct.Prefix != "" {
		rest, ok = strings.CutPrefix(path, s.direct.Prefix)
	}
	if !ok {
		return ""
	}
	tenant, _, _ := strings.Cut(rest, "/")
	return tenant
}

// tenantsPrefix begins the paths of PathTenant.
const tenantsPrefix = "/v1/tenants/"

// overloadLogged is the least time between two log lines about an overload.
const overloadLogged = 10 * time.Second

// logOverload logs that requests are refused because of overload, at most once each
// overloadLogged: a line for each would be a load of its own.
func (s *Server) logOverload() {
	now := time.Now().UnixNano()
	last := s.overloaded.Load()
	if now-last < int64(overloadLogged) || !s.overloaded.CompareAndSwap(last, now) {
		return
	}
	s.log.Warn("overload: this replica refuses requests; add replicas, or find the tenant whose calls take long",
		zap.Int("limit", s.limiter.Limit()), zap.Int("in_progress", s.limiter.InFlight()))
}

// arrive notifies the listener that a request has arrived.
func (w *trackedWriter) arrive(r *http.Request) {
	w.connection = connectionOf(r)
	if w.connection != nil {
		w.connection.RequestBegins()
	}
}

// leave ends what arrive and enter began, at the end of the answer. HTTP/1 then waits for a body that
// no handler has read.
func (w *trackedWriter) leave(r *http.Request) {
	w.ticket.Done()
	w.hold.Release()
	if w.connection == nil {
		return
	}
	if r.ProtoMajor == 1 && r.ContentLength != 0 && !w.bodyRead {
		w.connection.BodyBegins()
	}
	w.connection.RequestEnds()
}

// failed ends the part of a request that counts, which is answered with the code of an error. The
// time of one that met an outage of the store is no sign of too many requests.
func (w *trackedWriter) failed(code api.Code) {
	if code == api.CodeStoreUnavailable {
		w.ticket.Waits()
	}
}

// trackedOf returns the server's own writer behind w. Outside of a server, as in tests, it
// returns one that counts nothing.
func trackedOf(w http.ResponseWriter) *trackedWriter {
	for {
		switch inner := w.(type) {
		case *trackedWriter:
			return inner
		case interface{ Unwrap() http.ResponseWriter }:
			w = inner.Unwrap()
		default:
			return &trackedWriter{ResponseWriter: w}
		}
	}
}

// Charge makes tenant answerable for the bytes of a request and of its answer, once its caller
// is authorized. Errors: CodeCapacityLimit or CodeOverloaded if there is no room for them.
func Charge(w http.ResponseWriter, tenant string) error {
	t := trackedOf(w)
	t.hold.For(tenant)
	return t.refuseBytes(t.hold.Room())
}

// Started returns the function to call when the function of a request starts: the time from
// then on is not the platform's.
func Started(w http.ResponseWriter) func() { return trackedOf(w).ticket.Started }

// OwnWait returns the function to call when an invocation waits for others of its tenant: the
// time from then on is not the platform's.
func OwnWait(w http.ResponseWriter) func() { return trackedOf(w).ticket.Waits }

// Background admits a request that turned out to add work for later. The error is
// CodeOverloaded; nothing must have been done yet.
func Background(w http.ResponseWriter) error {
	t := trackedOf(w)
	err := t.ticket.Demote()
	if err == nil || t.metrics == nil {
		return err
	}
	return t.metrics.refuse(refusedLoad, err)
}

// HoldAnswer takes the bytes of an answer from the budget until the client has read it. It must
// be called before anything is written. The errors are those of Charge; an answer that is
// refused is not sent.
func HoldAnswer(w http.ResponseWriter, size int) error {
	if size < countedAnswer {
		return nil
	}
	t := trackedOf(w)
	if err := t.refuseBytes(t.hold.Grow(int64(size))); err != nil {
		return err
	}
	t.held = true
	return nil
}

func (w *trackedWriter) refuseBytes(err error) error {
	if err == nil || w.metrics == nil {
		return err
	}
	return w.metrics.refuse(refusedBytes, err)
}

// Wait admits a request of tenant that waits for events: a fetch of jobs, a followed log or
// feed. release ends the wait and must be called exactly once, also after an error:
// CodeCapacityLimit, CodeOverloaded.
func Wait(w http.ResponseWriter, r *http.Request, waits *admission.Waits, tenant string) (release func(), err error) {
	t := trackedOf(w)
	if connection := connectionOf(r); connection != nil && connection.Reserved() {
		err = reservedConnection()
		release = func() {}
	} else {
		release, err = waits.Enter(admission.Waiter{
			Tenant: tenant, Key: CallerOf(r.Context()).Identity().KeyID, Address: admission.AddressOf(r.RemoteAddr),
		})
	}
	switch {
	case err == nil:
		t.ticket.Waits()
	case t.metrics != nil:
		err = t.metrics.refuse(refusedWaits, err)
	}
	return release, err
}
