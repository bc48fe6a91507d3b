package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// runTools are the tools that run functions, and those about activations.
func runTools() []*tool {
	return []*tool{
		{
			name: "sous_invoke_function", title: "Invoke a function",
			description: "Invoke a function with an event and wait for its result, or with mode async accept it for later. Mode sync answers the activation with its status, which may be a failure.",
			action:      access.FunctionInvoke, properties: ofFunction + ", " + ofVersion + ", " + ofEvent + `, "mode": {"enum": ["sync", "async"]}, "idempotency_key": {"type": "string", "maxLength": 255, "description": "a repeat with it gets the first answer"}`,
			required: []string{"function"}, run: by(invokeFunction),
		},
		{
			name: "sous_test_function", title: "Test a function",
			description: "Run a function with an event and answer its result with its log. With files, they are published as a version that no alias points at, and that version runs.",
			action:      access.FunctionInvoke, properties: ofFunction + ", " + ofVersion + ", " + ofFiles + ", " + ofEvent, required: []string{"function"}, run: by(testFunction),
		},
		{
			name: "sous_list_activations", title: "List activations", description: "List the activations of a function or of the namespace, newest first, without results.",
			action: access.ActivationRead, hints: readOnly,
			properties: ofFunction + ", " + ofPage + `, "status": {"type": "string", "description": "such as success, error or timeout"}`, run: by(listActivations),
		},
		{
			name: "sous_get_activation", title: "Read an activation", description: "Read an activation with its status, result and error.",
			action: access.ActivationRead, hints: readOnly, properties: ofActivation, required: []string{"activation_id"}, run: by(getActivation),
		},
		{
			name: "sous_read_logs", title: "Read a log", description: "Read the log lines of an activation.",
			action: access.ActivationRead, hints: readOnly, properties: ofActivation + ", " + ofPage, required: []string{"activation_id"}, run: by(readLogs),
		},
		{
			name: "sous_cancel_activation", title: "Cancel an activation", description: "Cancel a queued or running activation.",
			action: access.ActivationCancel, hints: repeats, properties: ofActivation, required: []string{"activation_id"}, run: by(cancelActivation),
		},
	}
}

const ofActivation = `"activation_id": {"type": "string", "format": "uuid"}`

// invocation are the arguments of an invocation.
type invocation struct {
	versionArguments
	Event          json.RawMessage `json:"event"`
	Mode           string          `json:"mode"`
	IdempotencyKey string          `json:"idempotency_key"`
}

func invokeFunction(ctx context.Context, s *session, a invocation) (json.RawMessage, error) {
	ref := map[string]any{"alias": orProd(a.Alias)}
	if a.Version > 0 {
		ref = map[string]any{"version": a.Version}
	}
	body := map[string]any{"ref": ref}
	if len(a.Event) > 0 {
		body["event"] = a.Event
	}
	if a.Mode != "" {
		body["mode"] = a.Mode
	}
	header := http.Header{}
	if a.IdempotencyKey != "" {
		header.Set("Idempotency-Key", a.IdempotencyKey)
	}
	got, err := s.do(ctx, operation{method: http.MethodPost, path: a.path(s) + ":invoke", body: body, header: header})
	return got.body, err
}

// testLines is the number of log lines that a test answers at most.
const testLines = 100

func testFunction(ctx context.Context, s *session, a struct {
	publication
	Version int64           `json:"version"`
	Event   json.RawMessage `json:"event"`
}) (json.RawMessage, error) {
	if len(a.Files) > 0 {
		if a.Version > 0 {
			return nil, fmt.Errorf("files and version exclude each other")
		}
		made, err := a.publish(ctx, s, "")
		if err != nil {
			return nil, err
		}
		a.Version = made.Version
	}
	raw, err := invokeFunction(ctx, s, invocation{versionArguments: versionArguments{place: a.place, Version: a.Version, Alias: a.Alias}, Event: a.Event})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"activation": raw}
	if a.Version > 0 {
		out["version"] = a.Version
	}
	var activation api.InvokeResponse
	if err := json.Unmarshal(raw, &activation); err != nil {
		return nil, err
	}
	logs, err := s.list(ctx, s.tenantPath("activations", activation.ActivationID, "logs"), page{Limit: testLines}.query())
	if err == nil { // a key may invoke and not read logs
		out["logs"] = logs
	}
	return encode(out)
}

func listActivations(ctx context.Context, s *session, a struct {
	place
	page
	Status string `json:"status"`
}) (json.RawMessage, error) {
	query := a.query()
	query["namespace"] = []string{s.in(a.Namespace)}
	for name, value := range map[string]string{"function": a.Function, "status": a.Status} {
		if value != "" {
			query[name] = []string{value}
		}
	}
	return s.list(ctx, s.tenantPath("activations"), query)
}

// activation is the activation that arguments name.
type activation struct {
	ActivationID string `json:"activation_id"`
}

func getActivation(ctx context.Context, s *session, a activation) (json.RawMessage, error) {
	return s.list(ctx, s.tenantPath("activations", a.ActivationID), nil)
}

func readLogs(ctx context.Context, s *session, a struct {
	activation
	page
}) (json.RawMessage, error) {
	return s.list(ctx, s.tenantPath("activations", a.ActivationID, "logs"), a.query())
}

func cancelActivation(ctx context.Context, s *session, a activation) (json.RawMessage, error) {
	got, err := s.do(ctx, operation{method: http.MethodPost, path: s.tenantPath("activations", a.ActivationID) + ":cancel"})
	return got.body, err
}
