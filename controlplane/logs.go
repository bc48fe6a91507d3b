package controlplane

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/activations"
)

const contentTypeEvents = "text/event-stream"

// endEvent is the data of the last event of a followed log.
type endEvent struct {
	Status api.Status `json:"status"`
}

// logQuery is what a request for logs asks.
type logQuery struct {
	tenant, id string
	limit      int
	follow     bool
	from       activations.LogCursor
	list       scope
}

// routeLogs serves logs, as pages and as a stream.
func (s *Server) routeLogs(r chi.Router, a huma.API) {
	documentLogs(a)
	r.Get(pathActivation+"/logs", func(w http.ResponseWriter, r *http.Request) {
		q, err := readLogQuery(r)
		if err == nil {
			// A log belongs to an activation: without one there is nothing to wait for.
			_, err = s.activation(r.Context(), q.tenant, q.id)
		}
		switch {
		case err != nil:
			s.fail(w, r, requestIDOf(r.Context()), err)
		case q.follow:
			s.followLogs(w, r, q)
		default:
			s.pageLogs(w, r, q)
		}
	})
}

func documentLogs(a huma.API) {
	document(a, documented{
		method: http.MethodGet, path: pathActivation + "/logs", id: "get-logs", tag: "activations",
		summary: "Read or follow an activation's log",
		description: "A page has a next_cursor while more lines may come. follow=true streams server-sent events: " +
			"log with a line as data, then end with the status; Last-Event-ID resumes.",
		parameters: []*huma.Param{
			pathParameter("tenant", tenantName("").Schema(nil)),
			pathParameter("activation_id", &huma.Schema{Type: huma.TypeString, Format: "uuid"}),
			queryParameter("limit", "how many lines at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
			queryParameter("cursor", "next_cursor of the page before", &huma.Schema{Type: huma.TypeString}),
			queryParameter("follow", "stream until the activation ends", &huma.Schema{Type: huma.TypeBoolean}),
			headerParameter("Last-Event-ID", "the id of the last event that was seen"),
		},
		status: http.StatusOK, answer: map[string]any{contentTypeJSON: api.Page[api.LogLine]{}, contentTypeEvents: nil},
	})
}

func readLogQuery(r *http.Request) (logQuery, error) {
	q := logQuery{tenant: pathParam(r, "tenant"), id: pathParam(r, "activation_id"), limit: api.DefaultPageLimit}
	if err := api.ValidateTenant(q.tenant); err != nil {
		return q, err
	}
	if err := api.ValidateActivationID(q.id); err != nil {
		return q, err
	}
	query := r.URL.Query()
	var err error
	if limit := query.Get("limit"); limit != "" {
		if q.limit, err = strconv.Atoi(limit); err != nil || q.limit < 1 || q.limit > api.MaxPageLimit {
			return q, fieldError("limit", "must be from 1 to "+strconv.Itoa(api.MaxPageLimit))
		}
	}
	if follow := query.Get("follow"); follow != "" {
		if q.follow, err = strconv.ParseBool(follow); err != nil {
			return q, fieldError("follow", "must be true or false")
		}
	}
	cursor := query.Get("cursor")
	// A browser that reconnects says where it was, whatever the URL says.
	if last := r.Header.Get("Last-Event-ID"); q.follow && last != "" {
		cursor = last
	}
	q.list = listScope("logs", q.tenant, q.id)
	position, err := q.list.open(cursor)
	if err != nil {
		return q, err
	}
	q.from, err = activations.ParseLogCursor(position)
	return q, err
}

// pageLogs answers one page. While the activation runs the page has a cursor
// even at its end: that is where later lines will appear.
func (s *Server) pageLogs(w http.ResponseWriter, r *http.Request, q logQuery) {
	terminal, _, lines, next, err := s.readLogs(r.Context(), q)
	if err != nil {
		s.fail(w, r, requestIDOf(r.Context()), err)
		return
	}
	var cursor *string
	if len(lines) == q.limit || !terminal {
		cursor = q.list.seal(next.String())
	}
	items := make([]api.LogLine, len(lines))
	for i := range lines {
		items[i] = lines[i].LogLine
	}
	s.writeJSON(w, r, page(items, cursor))
}

// readLogs reads what there is from q.from on. The status is read first: lines
// are written before the terminal status, so that a terminal one means that
// these lines are all.
func (s *Server) readLogs(ctx context.Context, q logQuery) (terminal bool, status api.Status, lines []activations.LogEntry, next activations.LogCursor, err error) {
	a, err := s.activations.Get(ctx, q.tenant, q.id)
	if err != nil {
		return false, "", nil, q.from, err
	}
	lines, next, err = s.logs.Read(ctx, q.tenant, q.id, q.from, q.limit)
	return a.Status.Terminal(), a.Status, lines, next, err
}

// followLogs streams lines until the activation has ended and all are sent, the
// client goes away, its key does not hold any more, or the server drains (the
// client then reconnects elsewhere).
func (s *Server) followLogs(w http.ResponseWriter, r *http.Request, q logQuery) {
	h := w.Header()
	h.Set("Content-Type", contentTypeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return // there is nothing to wait for
	}
	stream := &eventStream{w: w, control: http.NewResponseController(w), list: q.list}
	q.limit = api.MaxPageLimit
	err := s.streamLogs(r.Context(), stream, q)
	if err != nil && r.Context().Err() == nil {
		// The answer has begun: all that can be said now is that it broke off.
		s.log.Warn("a followed log broke off", append(requestFields(r.Context(), requestIDOf(r.Context()), r.Method, r.URL.Path), zap.Error(err))...)
	}
}

func (s *Server) streamLogs(ctx context.Context, stream *eventStream, q logQuery) error {
	poll := time.NewTicker(s.follow)
	defer poll.Stop()
	alive := time.NewTicker(s.alive)
	defer alive.Stop()
	if err := stream.comment("following"); err != nil { // the headers leave with it
		return err
	}
	for {
		switch err := s.auth.again(ctx, callerOf(ctx)); {
		case api.ErrorCode(err) == api.CodeAuthnInvalid:
			return nil
		case err != nil:
			return err
		}
		terminal, status, lines, next, err := s.readLogs(ctx, q)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			if err := stream.lines(lines); err != nil {
				return err
			}
			alive.Reset(s.alive)
		}
		q.from = next
		if len(lines) == q.limit {
			continue
		}
		if terminal {
			return stream.end(endEvent{status})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.drained:
			return nil
		case <-alive.C:
			if err := stream.comment("alive"); err != nil {
				return err
			}
		case <-poll.C:
		}
	}
}

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	list    scope
	buf     []byte
}

func (e *eventStream) lines(lines []activations.LogEntry) error {
	for i := range lines {
		data, err := api.EncodeJSON(lines[i].LogLine)
		if err != nil {
			return err
		}
		e.event("log", e.list.seal(lines[i].Cursor.String()), data)
	}
	return e.flush()
}

func (e *eventStream) end(status endEvent) error {
	data, err := api.EncodeJSON(status)
	if err != nil {
		return err
	}
	e.event("end", nil, data)
	return e.flush()
}

// event appends one event; JSON has no line breaks that would end its data.
func (e *eventStream) event(name string, id *string, data []byte) {
	if id != nil {
		e.buf = append(append(append(e.buf, "id: "...), *id...), '\n')
	}
	e.buf = append(append(append(e.buf, "event: "...), name...), '\n')
	e.buf = append(append(append(e.buf, "data: "...), data...), "\n\n"...)
}

func (e *eventStream) comment(text string) error {
	e.buf = append(append(append(e.buf, ": "...), text...), "\n\n"...)
	return e.flush()
}

func (e *eventStream) flush() error {
	if _, err := e.w.Write(e.buf); err != nil {
		return err
	}
	e.buf = e.buf[:0]
	return e.control.Flush()
}
