package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api/mirror"
)

// Mirror returns the status of the mirror of the replica that answers. It needs a key of all tenants.
func (c *Client) Mirror(ctx context.Context) (mirror.Status, error) {
	var out mirror.Status
	_, err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/admin/mirror"}, nil, &out)
	return out, err
}

// RebuildMirror has the replica that answers rebuild its mirror, and returns the status of it. It
// needs a key of all tenants. api.CodeMirrorUnavailable.
func (c *Client) RebuildMirror(ctx context.Context) (mirror.Status, error) {
	var out mirror.Status
	_, err := c.call(ctx, &request{method: http.MethodPost, path: "/v1/admin/mirror:rebuild"}, nil, &out)
	return out, err
}
