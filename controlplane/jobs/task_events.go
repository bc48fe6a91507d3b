package jobs

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
	"github.com/codesous/sous/queue/tasks"
)

// taskPoll is the time between two reads of a stream of task events.
const taskPoll = 500 * time.Millisecond

// The names of the events of tasks.
const (
	eventProgress = "progress"
	eventTerminal = "terminal"
)

// taskHub shares the reads of the tasks that are followed. A task has no items, only a state.
type taskHub = feeds.Hub[struct{}, struct{}, *api.Task]

// newTaskHub returns a hub that reads each followed task once in taskPoll.
func newTaskHub() *taskHub {
	return feeds.New[struct{}, struct{}, *api.Task](feeds.Config[struct{}, struct{}]{
		Interval: taskPoll,
		Position: func(*struct{}) struct{} { return struct{}{} },
		Size:     func(*struct{}) int { return 0 },
	})
}

// taskTypeHub shares the reads of the events of types that are followed.
type taskTypeHub = feeds.Hub[tasks.Position, tasks.Event, struct{}]

// newTaskTypeHub returns a hub that reads the events of each followed type once in taskPoll.
func newTaskTypeHub() *taskTypeHub {
	return feeds.New[tasks.Position, tasks.Event, struct{}](feeds.Config[tasks.Position, tasks.Event]{
		Interval: taskPoll,
		Position: func(e *tasks.Event) tasks.Position { return e.Position },
		Size:     func(e *tasks.Event) int { return len(e.Task.Payload) + taskBytes },
	})
}

// taskBytes is about what a task takes in memory without its payload.
const taskBytes = 1 << 10

// taskEventsQuery is a decoded request for events.
type taskEventsQuery struct {
	TaskPath // with an empty TaskID for all tasks of the type
	limit    int
	follow   bool
	cursor   string     // of the request, "" for none
	list     rest.Scope // of the cursors
}

// taskEventEndpoints declares the routes of the changes of tasks. A task that is followed from
// its first step on:
//
//	event: progress  id: 1760000001000   data: {"task_id":"42","state":"running","current_step":1,…}
//	event: progress  id: 1760000009000   data: {"task_id":"42","state":"running","current_step":2,…}
//	event: terminal  id: 1760000010000   data: {"task_id":"42","state":"completed",…}
func (a *API) taskEventEndpoints() []rest.Endpoint {
	route := func(id, path, summary, description string, parameters ...*huma.Param) rest.Endpoint {
		return rest.Handle(rest.Route{
			Method: http.MethodGet, Path: path, Action: access.TaskRead, Extent: rest.HandlerNamespace,
			ID: id, Tag: "tasks", Summary: summary, Description: description,
			Parameters: append([]*huma.Param{
				rest.PathParameter("tenant", rest.TenantName("").Schema(nil)),
				rest.PathParameter("task_type", rest.ResourceName("").Schema(nil)),
				rest.QueryParameter("limit", "how many events at most, without follow", &huma.Schema{Type: huma.TypeInteger, Default: api.DefaultPageLimit}),
				rest.QueryParameter("cursor", "next_cursor of the previous page", &huma.Schema{Type: huma.TypeString}),
				rest.QueryParameter("follow", "stream new events", &huma.Schema{Type: huma.TypeBoolean}),
				rest.HeaderParameter("Last-Event-ID", "the id of the last event that was seen"),
			}, parameters...),
			Answer: rest.Content{rest.ContentTypeJSON: api.Page[api.Task]{}, rest.ContentTypeEvents: nil},
		}, a.taskEvents)
	}
	return []rest.Endpoint{
		route("list-task-type-events", pathTasks+"/{task_type}:events", "Read or follow the changes of all tasks of a type",
			"Each event is the task after a change, without its payload: creations, claims, steps and returns to pending, and ends. The last 10,000 of each kind are kept for 7 days. "+
				"A page always has a next_cursor, since later events may come. follow=true streams server-sent events: progress and terminal, from the cursor or else from the next change on; Last-Event-ID resumes."),
		route("list-task-events", pathTask+":events", "Read or follow the changes of a task",
			"A page reads the events that are kept for the type: it may be short, even empty, and still be followed by others. follow=true streams server-sent events until the task ends: progress with the task as it is, "+
				"again when it has changed, and terminal at its end. Changes within half a second may be one event.",
			rest.PathParameter("task_id", &huma.Schema{Type: huma.TypeString})),
	}
}

// readTaskEventsQuery decodes the path and the query of a request for events. Errors:
// CodeInvalid, CodeValidationName.
func readTaskEventsQuery(r *http.Request) (taskEventsQuery, error) {
	q := taskEventsQuery{limit: api.DefaultPageLimit}
	q.Tenant, q.TaskType, q.TaskID = rest.TenantName(rest.PathParam(r, "tenant")), rest.ResourceName(rest.PathParam(r, "task_type")), rest.PathParam(r, "task_id")
	if err := api.ValidateTenant(string(q.Tenant)); err != nil {
		return q, err
	}
	if err := api.ValidateTaskType(string(q.TaskType)); err != nil {
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
	q.cursor = query.Get("cursor")
	// A browser that reconnects sends the URL of its first request, and where it was in
	// this header.
	if last := r.Header.Get("Last-Event-ID"); q.follow && last != "" {
		q.cursor = last
	}
	q.list = rest.ListScope("task-events", string(q.Tenant), string(q.TaskType))
	return q, nil
}

// position returns the position that the cursor names, by default the beginning. Error:
// CodeValidationCursor.
func (q taskEventsQuery) position() (tasks.Position, error) {
	text, err := q.list.Open(q.cursor)
	if err != nil || text == "" {
		return tasks.Position{}, err
	}
	return tasks.ParsePosition(text)
}

// taskEvents answers with a page of events, or streams them with follow=true. A stream counts
// against the requests that wait: CodeCapacityLimit.
func (a *API) taskEvents(w http.ResponseWriter, r *http.Request) error {
	q, err := readTaskEventsQuery(r)
	if err != nil {
		return err
	}
	if q.TaskID != "" {
		if _, err := a.task(r.Context(), &q.TaskPath); err != nil {
			return err
		}
	}
	if !q.follow {
		return a.pageTaskEvents(w, r, q)
	}
	release, err := rest.Wait(w, r, a.waits, string(q.Tenant))
	defer release()
	if err != nil {
		return err
	}
	if q.TaskID != "" {
		return a.followTask(w, r, q)
	}
	return a.followTasks(w, r, q)
}

// pageTaskEvents answers with one page. It reads at most tasks.EventsPage events.
func (a *API) pageTaskEvents(w http.ResponseWriter, r *http.Request, q taskEventsQuery) error {
	at, err := q.position()
	if err != nil {
		return err
	}
	events, err := a.tasks.Events(r.Context(), string(q.Tenant), string(q.TaskType), at)
	if err != nil {
		return err
	}
	items := []api.Task{}
	for _, e := range events {
		if len(items) == q.limit {
			break
		}
		at = e.Position
		if q.admits(r.Context(), &e.Task) {
			items = append(items, e.Task)
		}
	}
	return rest.WriteJSON(w, r, http.StatusOK, rest.NewPage(items, q.list.Seal(at.String())))
}

// admits reports whether an event is one of the request, and of a namespace that the caller may
// enter.
func (q taskEventsQuery) admits(ctx context.Context, task *api.Task) bool {
	return (q.TaskID == "" || task.TaskID == q.TaskID) && rest.CallerOf(ctx).EntersNamespace(task.Namespace)
}

// followTask streams a task's changes until it has ended. It reads the record only, so it costs
// the same however many tasks the type has. The id of an event is the task's updated_at_ms,
// which increases with each change.
func (a *API) followTask(w http.ResponseWriter, r *http.Request, q taskEventsQuery) error {
	seen := int64(0)
	if q.cursor != "" {
		var err error
		seen, err = strconv.ParseInt(q.cursor, 10, 64)
		if err != nil {
			return api.Errorf(api.CodeValidationCursor, "%q is not the id of an event of the task", q.cursor)
		}
	}
	tenant, taskType, id := q.names()
	feed := a.taskFeeds.Follow(r.Context(), tenant, taskType+"/"+id, func(ctx context.Context, _ struct{}) (feeds.Batch[struct{}, struct{}, *api.Task], error) {
		task, err := a.tasks.Get(ctx, tenant, taskType, id)
		return feeds.Batch[struct{}, struct{}, *api.Task]{State: task}, err
	})
	defer feed.Leave()
	rest.Follow(w, r, rest.Feed{Name: "task", Poll: taskPoll, Send: func(ctx context.Context, stream *rest.EventStream) (rest.Progress, error) {
		batch, err := feed.Next(ctx, struct{}{})
		if err == nil && !rest.CallerOf(ctx).EntersNamespace(batch.State.Namespace) {
			err = tasks.NotFound(taskType, id)
		}
		if err != nil {
			return rest.Progress{}, err
		}
		task := *batch.State // shared with other followers
		// A client that lost the connection after the last event gets it again.
		if task.UpdatedAtMS <= seen && !task.State.Terminal() {
			return rest.Progress{}, nil
		}
		task.Payload = nil
		seen = task.UpdatedAtMS
		at := strconv.FormatInt(seen, 10)
		if err := addTask(stream, &task, &at); err != nil {
			return rest.Progress{}, err
		}
		return rest.Progress{Sent: true, Ended: task.State.Terminal()}, stream.Flush()
	}})
	return nil
}

// followTasks streams the events of a type of tasks until the client goes away or the server
// drains.
func (a *API) followTasks(w http.ResponseWriter, r *http.Request, q taskEventsQuery) error {
	at, err := q.position()
	if q.cursor == "" {
		at, err = a.tasks.Latest(r.Context(), string(q.Tenant), string(q.TaskType))
	}
	if err != nil {
		return err
	}
	tenant, taskType, _ := q.names()
	feed := a.taskTypeFeeds.Follow(r.Context(), tenant, taskType, func(ctx context.Context, from tasks.Position) (feeds.Batch[tasks.Position, tasks.Event, struct{}], error) {
		batch := feeds.Batch[tasks.Position, tasks.Event, struct{}]{Next: from}
		var err error
		batch.Items, err = a.tasks.Events(ctx, tenant, taskType, from)
		if n := len(batch.Items); n > 0 {
			batch.Next, batch.More = batch.Items[n-1].Position, n == tasks.EventsPage
		}
		return batch, err
	})
	defer feed.Leave()
	rest.Follow(w, r, rest.Feed{Name: "task type", Poll: taskPoll, Send: func(ctx context.Context, stream *rest.EventStream) (rest.Progress, error) {
		batch, err := feed.Next(ctx, at)
		if err != nil {
			return rest.Progress{}, err
		}
		at = batch.Next
		progress := rest.Progress{More: batch.More}
		for i := range batch.Items { // shared with other followers
			e := &batch.Items[i]
			if !q.admits(ctx, &e.Task) {
				continue
			}
			progress.Sent = true
			if err := addTask(stream, &e.Task, q.list.Seal(e.Position.String())); err != nil {
				return progress, err
			}
		}
		if !progress.Sent {
			return progress, nil
		}
		return progress, stream.Flush()
	}})
	return nil
}

// addTask adds the event of a task that has changed.
func addTask(stream *rest.EventStream, task *api.Task, id *string) error {
	data, err := api.EncodeJSON(task)
	if err != nil {
		return err
	}
	name := eventProgress
	if task.State.Terminal() {
		name = eventTerminal
	}
	stream.Add(name, id, data)
	return nil
}
