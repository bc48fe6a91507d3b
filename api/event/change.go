package event

import (
	"context"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// The kinds of resources that have events: the first part of their subjects.
const (
	KindJobs        = "jobs"
	KindActivations = "activations"
	KindFunctions   = "functions" // with their versions and aliases
	KindSchedules   = "schedules"
	KindBatches     = "batches"
	KindTasks       = "tasks"
	KindWebhooks    = "webhooks"
	KindBudgets     = "budgets"
)

// Kind returns the kind of the resource of an event, such as KindFunctions for the subject
// functions/shop/hello/versions/7.
func (e *Event) Kind() string {
	kind, _, _ := strings.Cut(e.Subject, "/")
	return kind
}

// The parts of the server that make changes.
const (
	ActorSchedules = "sous/schedules" // the ticks of schedules
	ActorTasks     = "sous/tasks"     // repairs of tasks whose workers are silent
	ActorBudgets   = "sous/budgets"   // resets of budgets, and the release of the jobs that they held
)

// Change is a change of a resource other than a job. A script appends it to the tenant's log
// before it makes the change.
type Change struct {
	Type  string
	Of    string // the subject without its last part, such as functions/shop/hello/versions
	ID    string // the last part of the subject
	AtMS  int64
	Actor string // the key or the part of the server that made the change, "" if unknown
	Data  Data
}

// Detail is an event's description as it is stored, in JSON.
type Detail struct {
	Data
	Actor string `json:"actor,omitempty"`
}

// Text returns d as JSON.
func (d *Detail) Text() string {
	raw, err := api.EncodeJSON(d)
	if err != nil { // it has no value that cannot be encoded
		return "{}"
	}
	return string(raw)
}

// Text returns the change as lua/include/changes.lua reads it: the type, the time, the subject's
// parts and the detail, separated by blanks. None of the first four has a blank.
func (c Change) Text() string {
	d := Detail{Data: c.Data, Actor: c.Actor}
	return c.Type + " " + strconv.FormatInt(c.AtMS, 10) + " " + c.Of + " " + c.ID + " " + d.Text()
}

// actorKey is the key of the actor of a context.
type actorKey struct{}

// WithActor returns a context whose changes are made by actor: the id of an API key, or one of the
// actors of the server.
func WithActor(ctx context.Context, actor string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// ActorOf returns the actor of ctx, "" if it is unknown.
func ActorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// FunctionOf returns the function of a queue, "" unless it is the queue of one.
func FunctionOf(queue string) string {
	function, ok := strings.CutPrefix(queue, api.FunctionQueuePrefix)
	if !ok {
		return ""
	}
	return function
}

// MaxText is the maximum length of the error and the reason of an event, in bytes.
const MaxText = 256

// Shorten returns the first whole characters of an error, at most MaxText bytes.
func Shorten(s string) string {
	if len(s) <= MaxText {
		return s
	}
	return strings.ToValidUTF8(s[:MaxText], "")
}
