package documents

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/feeds"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/storage/documents"
)

// pollInterval is how often a followed feed is read without a notice. Notices are sent
// best-effort: a lost one delays a change by at most this.
const pollInterval = 5 * time.Second

// minReadInterval is the least time between two reads of a followed feed: each follower
// reads the store, however often the namespace changes.
const minReadInterval = 20 * time.Millisecond

// changesBody is a page of a feed. It has no cursor: a client continues with since set to
// the id of the last item, until that is latest.
type changesBody struct {
	Items []api.DocumentChange `json:"items"`
	// Latest is the id of the namespace's last change.
	Latest int64 `json:"latest" doc:"the id of the namespace's last change"`
	// Reset means that the changes after since are not kept any more: the client has
	// missed some and must read the documents again.
	Reset bool `json:"reset" doc:"changes after since are no longer kept: read the documents again"`
}

// resetEvent is the data of the event reset. Latest is the id of the namespace's last
// change when it was sent.
type resetEvent struct {
	Latest int64 `json:"latest"`
}

// changesQuery holds the parameters of a request for changes. since is the id of the last
// change that the client knows, 0 for none.
type changesQuery struct {
	path
	since  int64
	limit  int
	follow bool
}

func (a *API) changeEndpoints() []rest.Endpoint {
	number := &huma.Schema{Type: huma.TypeInteger}
	return []rest.Endpoint{
		a.handle(rest.Route{
			Method: http.MethodGet, Path: pathDocumentChanges, Action: access.StorageRead, Extent: rest.HandlerNamespace,
			ID: "get-document-changes", Summary: "Read or follow the changes of a namespace",
			Description: "In the order in which they were made, without their values; the last 10,000 are kept. follow=true streams server-sent events: " +
				"put, delete and expire with a change as data and its id, reset if changes after since are no longer kept, and end when the server shuts down. Last-Event-ID resumes the stream.",
			Parameters: []*huma.Param{
				rest.QueryParameter("since", "the id of the last change that was seen; 0 for the start", number),
				rest.QueryParameter("limit", "how many changes at most, without follow", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
				rest.QueryParameter("follow", "stream new changes", &huma.Schema{Type: huma.TypeBoolean}),
				rest.HeaderParameter("Last-Event-ID", "the id of the last event that was seen"),
			},
			Answer: rest.Content{rest.ContentTypeJSON: changesBody{}, rest.ContentTypeEvents: nil},
		}, a.documentChanges),
	}
}

// readChangesQuery decodes the query of a request for changes. Errors:
// CodeDocumentInvalid.
func readChangesQuery(r *http.Request, p path) (q changesQuery, err error) {
	q = changesQuery{path: p, limit: api.DefaultPageLimit}
	query := r.URL.Query()
	if limit := query.Get("limit"); limit != "" {
		q.limit, err = strconv.Atoi(limit)
		if err != nil {
			return q, api.DocumentFieldError("limit", "must be from 1 to "+strconv.Itoa(documents.MaxChanges))
		}
	}
	if follow := query.Get("follow"); follow != "" {
		q.follow, err = strconv.ParseBool(follow)
		if err != nil {
			return q, api.DocumentFieldError("follow", "must be true or false")
		}
	}
	since, from := query.Get("since"), "since"
	// A browser that reconnects sends the URL of its first request, and where it was in
	// this header.
	if last := r.Header.Get("Last-Event-ID"); q.follow && last != "" {
		since, from = last, "Last-Event-ID"
	}
	if since != "" {
		q.since, err = strconv.ParseInt(since, 10, 64)
		if err != nil || q.since < 0 {
			return q, api.DocumentFieldError(from, "must be the id of a change, or 0")
		}
	}
	return q, nil
}

// documentChanges answers with a page of a namespace's changes, or streams them. A
// stream counts against the requests that wait: CodeRateLimited. The first read comes
// before the stream, so that errors are still answered with a problem.
func (a *API) documentChanges(w http.ResponseWriter, r *http.Request, p path) error {
	q, err := readChangesQuery(r, p)
	if err != nil {
		return err
	}
	feed, err := a.documents.Changes(r.Context(), p.tenant, p.install, p.namespace, q.since, q.limit)
	if err != nil {
		return err
	}
	if !q.follow {
		body := changesBody{Items: feed.Changes, Latest: feed.Latest, Reset: feed.Lost}
		if body.Items == nil {
			body.Items = []api.DocumentChange{}
		}
		return rest.WriteJSON(w, r, http.StatusOK, body)
	}
	release, err := rest.Wait(w, r, a.waits, p.tenant)
	defer release()
	if err != nil {
		return rateLimited(err)
	}
	a.followChanges(w, r, q)
	return nil
}

// rateLimited returns err, a CodeCapacityLimit, with the code that the document contract has for
// it.
func rateLimited(err error) error {
	var coded *api.Error
	if !errors.As(err, &coded) || coded.Code != api.CodeCapacityLimit {
		return err
	}
	own := *coded
	own.Code = api.CodeRateLimited
	return &own
}

// followChanges streams changes until the client goes away or the server drains. A feed
// has no end of its own. A follower that was away for more than the 10,000 changes that are
// kept:
//
//	GET …/changes?follow=true&since=17     (the oldest change kept is 5018)
//	event: reset   id: 5017   data: {"latest": 15017}
//	event: put     id: 5018   data: {"id": 5018, "op": "put", "key": "c-17", …}
//	…
//	event: end     data: {}                the server drains; reconnect with Last-Event-ID
func (a *API) followChanges(w http.ResponseWriter, r *http.Request, q changesQuery) {
	// Subscribed before the first read, so that no change is missed in between.
	changed, unsubscribe := a.documents.Follow(q.tenant, q.install, q.namespace)
	defer unsubscribe()
	feed := a.feeds.Follow(r.Context(), q.tenant, q.install+"/"+q.namespace, func(ctx context.Context, since int64) (feeds.Batch[int64, api.DocumentChange, int64], error) {
		found, err := a.documents.ChangesBehind(ctx, q.tenant, q.install, q.namespace, since)
		batch := feeds.Batch[int64, api.DocumentChange, int64]{Items: found.Changes, Next: since, State: found.Latest, Gap: found.Lost, More: len(found.Changes) == documents.MaxChanges}
		switch n := len(found.Changes); {
		case n > 0:
			batch.Next = found.Changes[n-1].ID
		case found.Lost:
			batch.Next = found.Latest
		}
		return batch, err
	})
	defer feed.Leave()
	rest.Follow(w, r, rest.Feed{
		Name: "feed", Changed: changed, Poll: pollInterval, MinInterval: minReadInterval,
		Send: func(ctx context.Context, stream *rest.EventStream) (rest.Progress, error) {
			batch, err := feed.Next(ctx, q.since)
			if err != nil {
				return rest.Progress{}, err
			}
			progress := rest.Progress{Sent: batch.Gap || len(batch.Items) > 0, More: batch.More}
			if progress.Sent {
				err = sendChanges(stream, documents.Feed{Changes: batch.Items, Latest: batch.State, Lost: batch.Gap})
			}
			q.since = batch.Next
			return progress, err
		},
		Drained: func(stream *rest.EventStream) error {
			stream.Add("end", nil, []byte("{}"))
			return stream.Flush()
		},
	})
}

// changeHub shares the reads of the feeds that are followed. Its states are the ids of the
// namespaces' last changes.
type changeHub = feeds.Hub[int64, api.DocumentChange, int64]

// newChangeHub returns a hub that reads each followed feed once in minReadInterval at most.
func newChangeHub() *changeHub {
	return feeds.New[int64, api.DocumentChange, int64](feeds.Config[int64, api.DocumentChange]{
		Interval: minReadInterval,
		Position: func(c *api.DocumentChange) int64 { return c.ID },
		Size:     func(c *api.DocumentChange) int { return len(c.Key) + 64 },
	})
}

// sendChanges writes part of a feed. A lost part is announced by
// reset; the id of that event lies just before the first change that follows, so a client that
// is cut off there misses none.
func sendChanges(stream *rest.EventStream, feed documents.Feed) error {
	if feed.Lost {
		data, err := api.EncodeJSON(resetEvent{feed.Latest})
		if err != nil {
			return err
		}
		since := feed.Latest
		if len(feed.Changes) > 0 {
			since = feed.Changes[0].ID - 1
		}
		id := strconv.FormatInt(since, 10) // a client that resumes from here gets no second reset
		stream.Add("reset", &id, data)
	}
	for i := range feed.Changes {
		c := &feed.Changes[i]
		data, err := api.EncodeJSON(c)
		if err != nil {
			return err
		}
		id := strconv.FormatInt(c.ID, 10)
		stream.Add(c.Op, &id, data)
	}
	return stream.Flush()
}
