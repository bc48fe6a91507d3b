package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api/whoami"
)

// WhoAmI returns the identity of the client's key, and the version and the clock of the
// server. Errors: api.CodeAuthnRequired without a key, api.CodeAuthnInvalid for a key that
// the server does not accept.
func (c *Client) WhoAmI(ctx context.Context) (whoami.Identity, error) {
	var out whoami.Identity
	_, err := c.call(ctx, &request{method: http.MethodGet, path: "/v1/whoami"}, nil, &out)
	return out, err
}
