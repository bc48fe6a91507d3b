package functions

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/feeds"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/activations"
)

// endEvent is the data of the last event of a followed log: the terminal status. A stream
// that ends without it was cut, and its client reconnects.
type endEvent struct {
	Status api.Status `json:"status"`
}

// logQuery holds the parameters of a request for logs. from is the position of the first
// line to read; list seals positions into cursors and event ids.
type logQuery struct {
	tenant, id string
	limit      int
	follow     bool
	from       activations.LogCursor
	list       rest.Scope
}

// logEndpoints declares the log of an activation. It is a Handle route because of the stream.
func (a *API) logEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathActivation + "/logs", Action: access.ActivationRead, Extent: rest.HandlerNamespace,
			ID: "get-logs", Tag: "activations", Summary: "Read or follow an activation's log",
			Description: "A page has a next_cursor while more lines may come. follow=true streams server-sent events: " +
				"log with a line as data, then end with the status; Last-Event-ID resumes.",
			Parameters: []*huma.Param{
				rest.PathParameter("tenant", rest.TenantName("").Schema(nil)),
				rest.PathParameter("activation_id", &huma.Schema{Type: huma.TypeString, Format: "uuid"}),
				rest.QueryParameter("limit", "how many lines at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
				rest.QueryParameter("cursor", "next_cursor of the previous page", &huma.Schema{Type: huma.TypeString}),
				rest.QueryParameter("follow", "stream until the activation ends", &huma.Schema{Type: huma.TypeBoolean}),
				rest.HeaderParameter("Last-Event-ID", "the id of the last event that was seen"),
			},
			Answer: rest.Content{rest.ContentTypeJSON: api.Page[api.LogLine]{}, rest.ContentTypeEvents: nil},
		}, a.getLogs),
	}
}

// getLogs answers with a page of lines, or streams them with follow=true. Both use the same
// positions: next_cursor of a page and the id of an event can be exchanged. A client that
// was cut off resumes behind the last line that it saw:
//
//	GET …/logs?follow=true                         event log, id A; event log, id B; (cut)
//	GET …/logs?follow=true, Last-Event-ID: B       event log, id C; event end
func (a *API) getLogs(w http.ResponseWriter, r *http.Request) error {
	q, err := readLogQuery(r)
	if err != nil {
		return err
	}
	if q.follow { // before any read: a follower that is refused costs the store nothing
		release, err := rest.Wait(w, r, a.waits, q.tenant)
		defer release()
		if err != nil {
			return err
		}
	}
	// A log belongs to an activation: without one there is nothing to wait for.
	if _, err := a.activation(r.Context(), q.tenant, q.id); err != nil {
		return err
	}
	if q.follow {
		a.followLogs(w, r, q)
		return nil
	}
	return a.pageLogs(w, r, q)
}

// readLogQuery decodes the path and the query of a request for logs. Errors:
// CodeInvalid, CodeValidationName, CodeValidationCursor.
func readLogQuery(r *http.Request) (logQuery, error) {
	q := logQuery{tenant: rest.PathParam(r, "tenant"), id: rest.PathParam(r, "activation_id"), limit: api.DefaultPageLimit}
	if err := api.ValidateTenant(q.tenant); err != nil {
		return q, err
	}
	if err := api.ValidateActivationID(q.id); err != nil {
		return q, err
	}
	query := r.URL.Query()
	var err error
	if limit := query.Get("limit"); limit != "" {
		q.limit, err = strconv.Atoi(limit)
		if err != nil || q.limit < 1 || q.limit > api.MaxPageLimit {
			return q, api.InvalidField("limit", "must be from 1 to "+strconv.Itoa(api.MaxPageLimit))
		}
	}
	if follow := query.Get("follow"); follow != "" {
		q.follow, err = strconv.ParseBool(follow)
		if err != nil {
			return q, api.InvalidField("follow", "must be true or false")
		}
	}
	cursor := query.Get("cursor")
	// A browser that reconnects sends the URL of its first request, and where it was in
	// this header.
	if last := r.Header.Get("Last-Event-ID"); q.follow && last != "" {
		cursor = last
	}
	q.list = rest.ListScope("logs", q.tenant, q.id)
	position, err := q.list.Open(cursor)
	if err != nil {
		return q, err
	}
	q.from, err = activations.ParseLogCursor(position)
	return q, err
}

// pageLogs answers with one page. While the activation runs even the last page has a
// cursor: later lines appear there.
func (a *API) pageLogs(w http.ResponseWriter, r *http.Request, q logQuery) error {
	terminal, _, lines, next, err := a.readLogs(r.Context(), q)
	if err != nil {
		return err
	}
	var cursor *string
	if len(lines) == q.limit || !terminal {
		cursor = q.list.Seal(next.String())
	}
	items := make([]api.LogLine, len(lines))
	for i := range lines {
		items[i] = lines[i].LogLine
	}
	return rest.WriteJSON(w, r, http.StatusOK, rest.NewPage(items, cursor))
}

// readLogs reads lines from q.from on, and the activation's status. The status is read
// first: lines are written before a terminal status, so that with a terminal status the
// lines are complete.
func (a *API) readLogs(ctx context.Context, q logQuery) (terminal bool, status api.Status, lines []activations.LogEntry, next activations.LogCursor, err error) {
	activation, err := a.activations.Get(ctx, q.tenant, q.id)
	if err != nil {
		return false, "", nil, q.from, err
	}
	lines, next, err = a.logs.Read(ctx, q.tenant, q.id, q.from, q.limit)
	return activation.Status.Terminal(), activation.Status, lines, next, err
}

// logHub shares the reads of the logs that are followed. Its states are the statuses of the
// activations.
type logHub = feeds.Hub[activations.LogCursor, activations.LogEntry, api.Status]

// newLogHub returns a hub that reads each followed log once in an interval.
func newLogHub(interval time.Duration) *logHub {
	return feeds.New[activations.LogCursor, activations.LogEntry, api.Status](feeds.Config[activations.LogCursor, activations.LogEntry]{
		Interval: interval,
		Position: func(e *activations.LogEntry) activations.LogCursor { return e.Cursor },
		Size:     func(e *activations.LogEntry) int { return len(e.Message) + 64 },
	})
}

// followLogs streams lines until the activation has ended and all of them are sent. q.from
// moves on with each call of Send, so that no line is sent twice. All followers of an activation
// share one reader, which must not depend on the request.
func (a *API) followLogs(w http.ResponseWriter, r *http.Request, q logQuery) {
	q.limit = api.MaxPageLimit
	log := a.logFeeds.Follow(r.Context(), q.tenant, q.id, func(ctx context.Context, from activations.LogCursor) (feeds.Batch[activations.LogCursor, activations.LogEntry, api.Status], error) {
		at := q
		at.from = from
		_, status, lines, next, err := a.readLogs(ctx, at)
		return feeds.Batch[activations.LogCursor, activations.LogEntry, api.Status]{Items: lines, Next: next, State: status, More: len(lines) == at.limit}, err
	})
	defer log.Leave()
	from := q.from
	rest.Follow(w, r, rest.Feed{Name: "log", Poll: a.followInterval, Send: func(ctx context.Context, stream *rest.EventStream) (rest.Progress, error) {
		batch, err := log.Next(ctx, from)
		if err != nil {
			return rest.Progress{}, err
		}
		if err := sendLines(stream, q.list, batch.Items); err != nil {
			return rest.Progress{}, err
		}
		from = batch.Next
		progress := rest.Progress{Sent: len(batch.Items) > 0, More: batch.More}
		if batch.State.Terminal() && !progress.More {
			progress.Ended = true
			err = sendEnd(stream, batch.State)
		}
		return progress, err
	}})
}

// sendLines writes each line as an event log, whose id is the position behind it.
func sendLines(stream *rest.EventStream, list rest.Scope, lines []activations.LogEntry) error {
	if len(lines) == 0 {
		return nil
	}
	for i := range lines {
		data, err := api.EncodeJSON(lines[i].LogLine)
		if err != nil {
			return err
		}
		stream.Add("log", list.Seal(lines[i].Cursor.String()), data)
	}
	return stream.Flush()
}

// sendEnd writes the event end. It has no id: a client that resumes after it would get it
// again.
func sendEnd(stream *rest.EventStream, status api.Status) error {
	data, err := api.EncodeJSON(endEvent{status})
	if err != nil {
		return err
	}
	stream.Add("end", nil, data)
	return stream.Flush()
}
