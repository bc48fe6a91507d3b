package client

import (
	"context"
	"net/http"

	"github.com/codesous/sous/api"
)

// NamespaceRecord is a namespace that has at least one record.
type NamespaceRecord struct {
	Namespace string `json:"namespace"`
}

// Namespaces returns one page of the tenant's namespaces that the key may enter, by name.
// CodeTenantNotFound.
func (t *Tenant) Namespaces(ctx context.Context, o PageOptions) (api.Page[NamespaceRecord], error) {
	var out api.Page[NamespaceRecord]
	_, err := t.c.call(ctx, &request{method: http.MethodGet, path: t.path("namespaces"), query: o.query()}, nil, &out)
	return out, err
}
