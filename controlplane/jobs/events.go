package jobs

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/feeds"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/events"
)

const pathEvents = rest.PathTenant + "/events"

const (
	// eventPoll is the time between two reads of a followed log of events.
	eventPoll = 100 * time.Millisecond
	// eventBatch is the largest number of events of one read.
	eventBatch = 1000
	// eventBytes is about what an event takes in memory without its texts.
	eventBytes = 512
	// markInterval is the least time between two marks of a stream without selected events.
	markInterval = 5 * time.Second
)

// eventGap is the name of the event before which others may be missing.
const eventGap = "gap"

// eventHub shares the reads of the logs of events that are followed: one topic for each tenant,
// whatever its followers select.
type eventHub = feeds.Hub[events.Position, event.Event, struct{}]

// newEventHub returns a hub that reads each followed log once in eventPoll.
func newEventHub() *eventHub {
	return feeds.New[events.Position, event.Event, struct{}](feeds.Config[events.Position, event.Event]{
		Interval: eventPoll,
		Position: func(e *event.Event) events.Position { return events.Position(e.ID) },
		Size:     func(e *event.Event) int { return len(e.Data.Error) + len(e.Data.Reason) + eventBytes },
	})
}

// eventsQuery is a decoded request for events.
type eventsQuery struct {
	tenant       string
	filter       event.Filter
	limit        int // 0 for no limit
	since        *int64
	cursor, last string          // last is a Last-Event-ID
	list         rest.Scope      // of the cursors
	reads        map[string]bool // the kinds of resources that the caller may read
}

// kindActions are the actions by which callers may read the resources of each kind.
var kindActions = map[string]access.Action{
	event.KindJobs: access.JobRead, event.KindActivations: access.ActivationRead, event.KindFunctions: access.FunctionRead, event.KindSchedules: access.ScheduleRead,
	event.KindBatches: access.BatchRead, event.KindTasks: access.TaskRead, event.KindWebhooks: access.WebhookRead, event.KindBudgets: access.BudgetRead,
}

// readableKinds returns the kinds of resources that c may read.
func readableKinds(c *access.Caller) map[string]bool {
	out := map[string]bool{}
	for kind, action := range kindActions {
		out[kind] = c.Need(action) == nil
	}
	return out
}

// eventEndpoints declares the log of events. A stream that begins behind events that are no
// longer kept:
//
//	event: gap            data: {}
//	id: 1760000001000-0.0
//	event: job.completed  data: {"specversion":"1.0","id":"1760000001000-0.0","type":"job.completed",…}
func (a *API) eventEndpoints() []rest.Endpoint {
	name := rest.ResourceName("").Schema(nil)
	text := &huma.Schema{Type: huma.TypeString}
	parameters := func(limit *huma.Param, more ...*huma.Param) []*huma.Param {
		return append([]*huma.Param{
			rest.PathParameter("tenant", rest.TenantName("").Schema(nil)),
			rest.QueryParameter("types", "only these types, separated by commas: job.dead, or job.* for all that begin so; default: all", text),
			rest.QueryParameter("namespace", "default: all that the caller may enter", name),
			rest.QueryParameter("queue", "only events of queues with this name: of their jobs, and of the schedules and tasks that make some", queueName("").Schema(nil)),
			rest.QueryParameter("function", "only events of functions with this name: of themselves, their versions, aliases, activations and jobs, and the schedules that call them", name),
			rest.QueryParameter("since", "only events that were recorded at or after this time, in RFC 3339 or as Unix milliseconds", text),
			rest.QueryParameter("cursor", "next_cursor of a page of events with the same filters; since does not count then", text),
			limit,
		}, more...)
	}
	return []rest.Endpoint{
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathEvents, Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "list-events", Tag: "jobs", Summary: "List the events of the tenant, oldest first",
			Description: "Events of the last 24 hours are kept, at most 100,000 records, of which each has the events of one type of a call. A queue's setting events decides which of its jobs have events, and record.events of a version which of its activations. The caller gets those of resources that its roles and its namespace let it read. " +
				"A page always has a next_cursor, since later events may come. It reads at most 10,000 events, so it may be short, even empty, and still be followed by others. " +
				"gap is true if events before those of the page may be missing, because they are no longer kept.",
			Parameters: parameters(rest.QueryParameter("limit", "how many events at most", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit})),
			Answer:     rest.JSON(event.Page{}),
		}, a.listEvents),
		rest.Handle(rest.Route{
			Method: http.MethodGet, Path: pathEvents + ":follow", Action: access.JobRead, Extent: rest.HandlerNamespace,
			ID: "follow-events", Tag: "jobs", Summary: "Stream the events of the tenant as they are recorded",
			Description: "Server-sent events, each with the type of the event as its name and the event as data, from the next event on, or from since, or from a cursor; Last-Event-ID resumes. " +
				"An event gap comes first where others may be missing, because they are no longer kept.",
			Parameters: parameters(
				rest.QueryParameter("limit", "end the stream after so many events; default: never", &huma.Schema{Type: huma.TypeInteger}),
				rest.HeaderParameter("Last-Event-ID", "the id of the last event that was seen"),
			),
			Answer: rest.Content{rest.ContentTypeEvents: nil},
		}, a.followEvents),
	}
}

// readEventsQuery decodes the path and the query of a request for events. limit is the default
// limit. Errors: CodeInvalid, CodeValidationName, CodeAuthzDenied.
func readEventsQuery(r *http.Request, limit int) (eventsQuery, error) {
	q := eventsQuery{tenant: rest.PathParam(r, "tenant"), limit: limit, last: r.Header.Get("Last-Event-ID"), reads: readableKinds(rest.CallerOf(r.Context()))}
	if err := api.ValidateTenant(q.tenant); err != nil {
		return q, err
	}
	query := r.URL.Query()
	q.filter = event.Filter{Types: typesOf(query["types"]), Namespace: query.Get("namespace"), Queue: query.Get("queue"), Function: query.Get("function")}
	if err := validateEventFilter(&q.filter); err != nil {
		return q, err
	}
	if q.filter.Namespace != "" {
		if err := rest.CallerOf(r.Context()).NeedNamespace(q.filter.Namespace); err != nil {
			return q, err
		}
	}
	var err error
	if text := query.Get("limit"); text != "" {
		q.limit, err = strconv.Atoi(text)
		if err != nil || q.limit < 1 || q.limit > api.MaxPageLimit {
			return q, api.InvalidField("limit", "must be from 1 to "+strconv.Itoa(api.MaxPageLimit))
		}
	}
	q.since, err = sinceOf(query)
	q.cursor = query.Get("cursor")
	q.list = rest.ListScope("events", q.tenant, strings.Join(q.filter.Types, ","), q.filter.Namespace, q.filter.Queue, q.filter.Function)
	return q, err
}

// typesOf returns the types of all values of the parameter, sorted.
func typesOf(values []string) []string {
	var types []string
	for _, value := range values {
		for t := range strings.SplitSeq(value, ",") {
			if t != "" {
				types = append(types, t)
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// validateEventFilter refuses types that do not exist, and names that cannot exist.
func validateEventFilter(f *event.Filter) error {
	if f.Namespace != "" {
		if err := api.ValidateName("namespace", f.Namespace); err != nil {
			return err
		}
	}
	if f.Queue != "" {
		if err := api.ValidateQueue(f.Queue); err != nil {
			return err
		}
	}
	if f.Function != "" {
		if err := api.ValidateName("function", f.Function); err != nil {
			return err
		}
	}
	return f.Validate()
}

// sinceOf returns the parameter since as a Unix time in milliseconds, nil without one.
func sinceOf(query url.Values) (*int64, error) {
	text := query.Get("since")
	if text == "" {
		return nil, nil //nolint:nilnil // documented: no parameter
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	at, dated := time.Parse(time.RFC3339, text)
	if dated == nil {
		ms = at.UnixMilli()
	}
	if err != nil && dated != nil || ms < 0 {
		return nil, api.InvalidField("since", "must be a time, such as 2026-10-08T19:00:00Z or Unix milliseconds")
	}
	return &ms, nil
}

// begin returns where the request begins: behind the last event that was seen, at the cursor, at
// the time, and otherwise where other returns. Error: CodeValidationCursor.
func (q *eventsQuery) begin(other func() (events.Position, error)) (events.Position, error) {
	if q.last != "" {
		return events.ParsePosition(q.last)
	}
	text, err := q.list.Open(q.cursor)
	switch {
	case err != nil:
		return "", err
	case text != "":
		return events.ParsePosition(text)
	case q.since != nil:
		return events.Since(*q.since), nil
	}
	return other()
}

// idOf returns a position as text that is not empty.
func idOf(p events.Position) string {
	if p == "" {
		p = events.Since(1)
	}
	return string(p)
}

// admits reports whether the request selects an event, and the caller may enter its namespace and
// read its resource. An event of a kind that this release does not know is hidden.
func (q *eventsQuery) admits(ctx context.Context, e *event.Event) bool {
	return q.filter.Matches(e) && q.reads[e.Kind()] && rest.CallerOf(ctx).EntersNamespace(e.Data.Namespace)
}

// listEvents answers with one page.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := readEventsQuery(r, api.DefaultPageLimit)
	if err != nil {
		return err
	}
	q.last = "" // for streams only
	from, err := q.begin(func() (events.Position, error) { return "", nil })
	if err != nil {
		return err
	}
	page, err := a.events.Select(r.Context(), q.tenant, from, q.limit, func(e *event.Event) bool { return q.admits(r.Context(), e) })
	if err != nil {
		return err
	}
	a.logDamaged(q.tenant, page.Damaged)
	items := page.Events
	if items == nil {
		items = []event.Event{}
	}
	return rest.WriteJSON(w, r, http.StatusOK, event.Page{Items: items, NextCursor: q.list.Seal(idOf(page.Next)), More: page.More, Gap: page.Gap})
}

// followEvents streams events until the client goes away or the server drains. A stream counts
// against the requests that wait: CodeCapacityLimit.
func (a *API) followEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := readEventsQuery(r, 0)
	if err != nil {
		return err
	}
	release, err := rest.Wait(w, r, a.waits, q.tenant)
	defer release()
	if err != nil {
		return err
	}
	at, err := q.begin(func() (events.Position, error) { return a.events.End(r.Context(), q.tenant) })
	if err != nil {
		return err
	}
	topic := a.eventFeeds.Follow(r.Context(), q.tenant, "", a.readEvents(q.tenant))
	defer topic.Leave()
	s := eventSender{q: &q, at: at, topic: topic}
	rest.Follow(w, r, rest.Feed{Name: "log of events", Poll: eventPoll, Send: s.send})
	return nil
}

// readEvents returns the reader that all followers of a tenant share.
func (a *API) readEvents(tenant string) feeds.Reader[events.Position, event.Event, struct{}] {
	return func(ctx context.Context, from events.Position) (feeds.Batch[events.Position, event.Event, struct{}], error) {
		page, err := a.events.Read(ctx, tenant, from, eventBatch)
		if err != nil {
			return feeds.Batch[events.Position, event.Event, struct{}]{}, err
		}
		a.logDamaged(tenant, page.Damaged)
		return feeds.Batch[events.Position, event.Event, struct{}]{Items: page.Events, Next: page.Next, More: page.More, Gap: page.Gap}, nil
	}
}

// logDamaged logs entries that could not be decoded.
func (a *API) logDamaged(tenant string, ids []string) {
	if len(ids) > 0 {
		a.log.Error("entries of a log of events are damaged: their events are left out", zap.String("tenant", tenant), zap.Strings("entries", ids))
	}
}

// eventSender sends the events that one follower selects.
type eventSender struct {
	q      *eventsQuery
	topic  *feeds.Topic[events.Position, event.Event, struct{}]
	at     events.Position
	sent   int
	marked time.Time // when the client last got a position
}

// send writes the events behind the follower's position. The client also gets the position at the
// beginning, so that it misses no event if its connection breaks before the first, and from time to
// time while none is selected, so that it does not resume far behind.
func (s *eventSender) send(ctx context.Context, stream *rest.EventStream) (rest.Progress, error) {
	if s.marked.IsZero() && s.q.last == "" {
		stream.Mark(idOf(s.at))
		if err := stream.Flush(); err != nil {
			return rest.Progress{}, err
		}
	}
	if s.marked.IsZero() {
		s.marked = time.Now()
	}
	batch, err := s.topic.Next(ctx, s.at)
	if err != nil {
		return rest.Progress{}, err
	}
	moved := batch.Next != s.at
	s.at = batch.Next
	progress := rest.Progress{More: batch.More}
	if batch.Gap {
		progress.Sent = true
		stream.Add(eventGap, nil, []byte("{}"))
	}
	last := ""
	for i := range batch.Items { // shared with other followers
		e := &batch.Items[i]
		if !s.q.admits(ctx, e) {
			continue
		}
		data, err := api.EncodeJSON(e)
		if err != nil {
			return progress, err
		}
		stream.Add(e.Type, &e.ID, data)
		progress.Sent, last = true, e.ID
		s.sent++
		if s.sent == s.q.limit {
			progress.Ended = true
			return progress, stream.Flush()
		}
	}
	switch {
	case last != "":
		s.marked = time.Now()
	case moved && (batch.Gap || time.Since(s.marked) >= markInterval):
		stream.Mark(idOf(batch.Next))
		s.marked, progress.Sent = time.Now(), true
	}
	if !progress.Sent {
		return progress, nil
	}
	return progress, stream.Flush()
}
