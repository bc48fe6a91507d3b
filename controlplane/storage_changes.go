package controlplane

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/documents"
)

// lookInterval is how often a feed that is followed is looked at without a notice.
const lookInterval = 5 * time.Second

// lookPause is how often it is looked at the most, however many write there: each
// follower reads the store.
const lookPause = 20 * time.Millisecond

// changesBody is a page of a feed.
type changesBody struct {
	Items []api.DocumentChange `json:"items"`
	// Latest is where the namespace stands.
	Latest int64 `json:"latest" doc:"the id of the namespace's last change"`
	// Reset says that changes between since and the first one are not kept any more.
	Reset bool `json:"reset" doc:"changes behind since are not kept any more: read the documents anew"`
}

// resetEvent is the data of the event reset.
type resetEvent struct {
	Latest int64 `json:"latest"`
}

// changesQuery is what a request for changes asks.
type changesQuery struct {
	storagePath
	since  int64
	limit  int
	follow bool
}

func (s *Server) routeDocumentChanges(t storageRoutes) {
	number := &huma.Schema{Type: huma.TypeInteger}
	t.add(documented{
		method: http.MethodGet, path: pathDocumentChanges, id: "get-document-changes",
		summary: "Read or follow the changes of a namespace",
		description: "In the order in which they were made, without their values; the last 10,000 are kept. follow=true streams server-sent events: " +
			"put, delete and expire with a change as data and its id, reset where changes behind since are not kept any more, and end where the server ends. Last-Event-ID resumes.",
		parameters: []*huma.Param{
			queryParameter("since", "the id of the last change that was seen; 0 for the start", number),
			queryParameter("limit", "how many changes at most, without follow", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
			queryParameter("follow", "stream what comes", &huma.Schema{Type: huma.TypeBoolean}),
			headerParameter("Last-Event-ID", "the id of the last event that was seen"),
		},
		status: http.StatusOK, answer: map[string]any{contentTypeJSON: changesBody{}, contentTypeEvents: nil},
	}, s.documentChanges)
}

func readChangesQuery(r *http.Request, p storagePath) (q changesQuery, err error) {
	q = changesQuery{storagePath: p, limit: api.DefaultPageLimit}
	query := r.URL.Query()
	if limit := query.Get("limit"); limit != "" {
		if q.limit, err = strconv.Atoi(limit); err != nil {
			return q, api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(documents.MaxChanges))
		}
	}
	if follow := query.Get("follow"); follow != "" {
		if q.follow, err = strconv.ParseBool(follow); err != nil {
			return q, api.DocumentFieldError("follow", "must be true or false")
		}
	}
	since, from := query.Get("since"), "since"
	// A browser that reconnects says where it was, whatever the URL says.
	if last := r.Header.Get("Last-Event-ID"); q.follow && last != "" {
		since, from = last, "Last-Event-ID"
	}
	if since != "" {
		if q.since, err = strconv.ParseInt(since, 10, 64); err != nil || q.since < 0 {
			return q, api.DocumentFieldError(from, "must be the id of a change, or 0")
		}
	}
	return q, nil
}

func (s *Server) documentChanges(w http.ResponseWriter, r *http.Request, p storagePath) error {
	q, err := readChangesQuery(r, p)
	if err != nil {
		return err
	}
	feed, err := s.documents.Changes(r.Context(), p.tenant, p.install, p.namespace, q.since, q.limit)
	if err != nil {
		return err
	}
	if !q.follow {
		body := changesBody{Items: feed.Changes, Latest: feed.Latest, Reset: feed.Lost}
		if body.Items == nil {
			body.Items = []api.DocumentChange{}
		}
		s.writeJSON(w, r, body)
		return nil
	}
	leave, ok := s.waits.enter(p.tenant)
	defer leave()
	if !ok {
		return api.Errorf(api.CodeRateLimited, "too many follow changes or wait for jobs already")
	}
	s.followChanges(w, r, q)
	return nil
}

// followChanges streams changes until the client goes away, its key does not hold any
// more, or the server drains (the client then resumes elsewhere).
func (s *Server) followChanges(w http.ResponseWriter, r *http.Request, q changesQuery) {
	h := w.Header()
	h.Set("Content-Type", contentTypeEvents)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies must not hold events back
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return // there is nothing to wait for
	}
	stream := &eventStream{w: w, control: http.NewResponseController(w)}
	err := s.streamChanges(r.Context(), stream, q)
	if err != nil && r.Context().Err() == nil {
		// The answer has begun: all that can be said now is that it broke off.
		s.log.Warn("a followed feed broke off", append(requestFields(r.Context(), requestIDOf(r.Context()), r.Method, r.URL.Path), zap.Error(err))...)
	}
}

func (s *Server) streamChanges(ctx context.Context, stream *eventStream, q changesQuery) error {
	// From before the first look, so that nothing falls in between.
	changed, done := s.documents.Follow(q.tenant, q.install, q.namespace)
	defer done()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
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
		looked := time.Now()
		feed, err := s.documents.ChangesBehind(ctx, q.tenant, q.install, q.namespace, q.since)
		if err != nil {
			return err
		}
		if feed.Lost || len(feed.Changes) > 0 {
			if q.since, err = stream.changes(feed, q.since); err != nil {
				return err
			}
			alive.Reset(s.alive)
		}
		if len(feed.Changes) == documents.MaxChanges && !s.draining() {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.drained:
			return stream.ended()
		case <-alive.C:
			if err := stream.comment("alive"); err != nil {
				return err
			}
		case <-changed:
			pause(ctx, lookPause-time.Since(looked))
		case <-look.C:
		}
	}
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// draining says whether the server is to end.
func (s *Server) draining() bool {
	select {
	case <-s.drained:
		return true
	default:
		return false
	}
}

// changes writes part of a feed, and gives the id behind which it goes on.
func (e *eventStream) changes(feed documents.Feed, since int64) (int64, error) {
	if feed.Lost {
		data, err := api.EncodeJSON(resetEvent{feed.Latest})
		if err != nil {
			return since, err
		}
		if since = feed.Latest; len(feed.Changes) > 0 {
			since = feed.Changes[0].ID - 1
		}
		id := strconv.FormatInt(since, 10) // whoever comes back is not told again
		e.event("reset", &id, data)
	}
	for i := range feed.Changes {
		c := &feed.Changes[i]
		data, err := api.EncodeJSON(c)
		if err != nil {
			return since, err
		}
		id := strconv.FormatInt(c.ID, 10)
		e.event(c.Op, &id, data)
		since = c.ID
	}
	return since, e.flush()
}

// ended writes the event after which none comes.
func (e *eventStream) ended() error {
	e.event("end", nil, []byte("{}"))
	return e.flush()
}
