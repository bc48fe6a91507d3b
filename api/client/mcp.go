package client

import (
	"context"
	"net/http"
	"net/url"
)

// PostMCP sends a message of the Model Context Protocol to the server, and returns the open response of
// any status: JSON, server-sent events, or nothing for a notification. The tools are those of the tenant
// and the namespace of n. The caller closes the body.
func (n *Namespace) PostMCP(ctx context.Context, header http.Header, message []byte) (*http.Response, error) {
	header = header.Clone()
	header.Set("Accept", contentJSON+", text/event-stream")
	return n.tenant.c.send(ctx, &request{
		method: http.MethodPost, path: "/v1/mcp", query: url.Values{"tenant": {n.tenant.name}, "namespace": {n.name}},
		header: header, body: message, contentType: contentJSON,
	})
}
