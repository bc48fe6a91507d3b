package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"

	"github.com/codesous/sous/api"
)

// Logs returns one page of an activation's log lines, in their order. While the
// activation runs every page has a cursor: an empty page means no more lines yet.
// CodeActivationNotFound.
func (t *Tenant) Logs(ctx context.Context, id string, o PageOptions) (api.Page[api.LogLine], error) {
	var out api.Page[api.LogLine]
	r := &request{method: http.MethodGet, path: t.path("activations", id, "logs"), query: o.query()}
	_, err := t.c.call(ctx, r, nil, &out)
	return out, err
}

// LogLines iterates over the lines that exist now and does not wait for more.
// It stops after the first error, which it yields.
func (t *Tenant) LogLines(ctx context.Context, id string) iter.Seq2[api.LogLine, error] {
	return All(ctx, func(ctx context.Context, o PageOptions) (api.Page[api.LogLine], error) {
		page, err := t.Logs(ctx, id, o)
		if len(page.Items) == 0 {
			page.NextCursor = nil // later lines are not awaited
		}
		return page, err
	}, PageOptions{Limit: api.MaxPageLimit})
}

// FollowLogs calls handle with every line of an activation's log, existing and new, until
// the activation has ended. A broken stream is opened again at the same position, at most
// MaxAttempts times in a row without a line in between. An error of handle ends it and is
// returned. CodeActivationNotFound.
func (t *Tenant) FollowLogs(ctx context.Context, id string, handle func(api.LogLine) error) error {
	follow := &stream{c: t.c, path: t.path("activations", id, "logs"), take: func(e sentEvent) (bool, error) {
		switch e.name {
		case eventEnd:
			return true, nil
		case "", eventMessage, eventLog:
		default: // ignore other events
			return false, nil
		}
		var line api.LogLine
		if err := json.Unmarshal(e.data, &line); err != nil {
			return true, fmt.Errorf("log line of %s: %w", id, err)
		}
		return false, handle(line)
	}}
	return follow.run(ctx)
}
