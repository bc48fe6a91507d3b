package client

import (
	"context"
	"net/http"
)

// Ready returns nil if the server reports that it is ready. It sends one request.
func (c *Client) Ready(ctx context.Context) error {
	a, err := c.once(ctx, &request{method: http.MethodGet, path: "/readyz"})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return responseError(a)
	}
	return nil
}
