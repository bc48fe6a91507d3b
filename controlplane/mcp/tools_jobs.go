package mcp

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/codesous/sous/controlplane/access"
)

// jobTools are the tools about queues and jobs.
func jobTools() []*tool {
	return []*tool{
		{
			name: "sous_enqueue_job", title: "Add a job to a queue",
			description: "Add a job to a queue, for workers or for a function with a trigger. options are those of the API, such as {\"max_attempts\": 3, \"delay_ms\": 60000, \"priority\": \"high\", \"unique_key\": \"order-7\"}.",
			action:      access.JobEnqueue,
			properties: ofQueue + `, "payload": {"description": "any JSON value"}, "options": {"type": "object"}, ` +
				`"idempotency_key": {"type": "string", "maxLength": 255, "description": "a repeat with it gets the first answer"}`,
			required: []string{"queue"}, run: by(enqueueJob),
		},
		{
			name: "sous_get_job", title: "Read a job", description: "Read a job with its state, result, attempts and errors.",
			action: access.JobRead, hints: readOnly, properties: `"job_id": {"type": "string"}`, required: []string{"job_id"}, run: by(getJob),
		},
		{
			name: "sous_list_jobs", title: "List jobs", description: "List the jobs of a queue in a state, without their attempts and errors.",
			action: access.JobRead, hints: readOnly,
			properties: ofQueue + ", " + ofPage + `, "state": {"type": "string", "description": "such as pending, active, completed, dead or held"}`,
			required:   []string{"queue"}, run: by(listJobs),
		},
		{
			name: "sous_list_queues", title: "List queues", description: "List the queues of a namespace with the numbers of their jobs.",
			action: access.QueueRead, hints: readOnly, properties: inNamespace + ", " + ofPage, run: by(listQueues),
		},
	}
}

const ofQueue = inNamespace + `, "queue": {"type": "string", "description": "the name of the queue"}`

// queueArguments name a queue.
type queueArguments struct {
	Namespace string `json:"namespace"`
	Queue     string `json:"queue"`
}

// path returns the path of the jobs of the queue.
func (a queueArguments) path(s *session) string {
	return s.tenantPath("namespaces", s.in(a.Namespace), "queues", a.Queue, "jobs")
}

func enqueueJob(ctx context.Context, s *session, a struct {
	queueArguments
	Payload        json.RawMessage            `json:"payload"`
	Options        map[string]json.RawMessage `json:"options"`
	IdempotencyKey string                     `json:"idempotency_key"`
}) (json.RawMessage, error) {
	body := map[string]any{}
	for name, value := range a.Options {
		body[name] = value
	}
	if len(a.Payload) > 0 {
		body["payload"] = a.Payload
	}
	header := http.Header{}
	if a.IdempotencyKey != "" {
		header.Set("Idempotency-Key", a.IdempotencyKey)
	}
	got, err := s.do(ctx, operation{method: http.MethodPost, path: a.path(s), body: body, header: header})
	return got.body, err
}

func getJob(ctx context.Context, s *session, a struct {
	JobID string `json:"job_id"`
}) (json.RawMessage, error) {
	return s.list(ctx, s.tenantPath("jobs", a.JobID), nil)
}

func listJobs(ctx context.Context, s *session, a struct {
	queueArguments
	page
	State string `json:"state"`
}) (json.RawMessage, error) {
	query := a.query()
	if a.State != "" {
		query["state"] = []string{a.State}
	}
	return s.list(ctx, a.path(s), query)
}

func listQueues(ctx context.Context, s *session, a struct {
	Namespace string `json:"namespace"`
	page
}) (json.RawMessage, error) {
	return s.list(ctx, s.tenantPath("namespaces", s.in(a.Namespace), "queues"), a.query())
}
