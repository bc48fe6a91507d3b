package client

import (
	"context"
	"net/http"
)

// Ready is nil where the server answers that it serves; it asks once.
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
