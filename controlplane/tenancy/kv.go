package tenancy

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathKV      = rest.PathNamespace + "/kv"
	pathKVValue = pathKV + "/value"
)

type listKVInput struct {
	rest.NamespacePath
	rest.PageQuery
	Prefix string `query:"prefix" maxLength:"512" doc:"only keys that begin with it"`
}

// kvInput names a key in the query: keys contain any character, also slashes.
type kvInput struct {
	rest.NamespacePath
	Key string `query:"key" maxLength:"512" doc:"the key"`
}

// Resolve refuses a request without a key.
func (in *kvInput) Resolve(huma.Context) []error {
	var missing error
	if in.Key == "" {
		missing = api.InvalidField("key", "is required")
	}
	return rest.Problems(api.ValidateTenant(string(in.Tenant)), api.ValidateName("namespace", string(in.Namespace)), missing)
}

type kvOutput struct{ Body api.KVEntry }

// kvEndpoints declares the routes of cs.kv, by which operators look at it and make room. Only
// functions write.
func (a *API) kvEndpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathKV, Action: access.KVRead, Extent: rest.PathNamespaceOnly,
			ID: "list-kv", Tag: "kv", Summary: "List a namespace's keys of cs.kv in byte order, with sizes and without values",
			Description: "A page may have fewer keys than the limit and still have a next one.",
		}, a.listKV),
		rest.Operation(rest.Route{
			Method: http.MethodGet, Path: pathKVValue, Action: access.KVRead, Extent: rest.PathNamespaceOnly,
			ID: "get-kv", Tag: "kv", Summary: "Read the value of a key of cs.kv",
		}, a.getKV),
		rest.Operation(rest.Route{
			Method: http.MethodDelete, Path: pathKVValue, Action: access.KVDelete, Extent: rest.PathNamespaceOnly,
			ID: "delete-kv", Tag: "kv", Summary: "Delete a key of cs.kv",
		}, a.deleteKV),
	}
}

// listKV answers with a page of keys. Errors: CodeValidationCursor.
func (a *API) listKV(ctx context.Context, in *listKVInput) (*rest.PageOutput[api.KVEntry], error) {
	tenant, namespace := string(in.Tenant), string(in.Namespace)
	return rest.ReadPage(rest.ListScope("kv", tenant, namespace, in.Prefix), in.Cursor, func(after string) ([]api.KVEntry, string, error) {
		found, next, err := a.kv.List(ctx, tenant, namespace, in.Prefix, after, in.Limit)
		items := make([]api.KVEntry, len(found))
		for i, entry := range found {
			items[i] = api.KVEntry{Key: entry.Key, Bytes: entry.Bytes, ExpiresAtMS: entry.ExpiresAtMS}
		}
		return items, next, err
	})
}

// getKV answers with a value, which functions have stored as JSON. Errors: CodeKVNotFound.
func (a *API) getKV(ctx context.Context, in *kvInput) (*kvOutput, error) {
	value, found, err := a.kv.Get(ctx, string(in.Tenant), string(in.Namespace), in.Key)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, kvNotFound(in.Key)
	}
	return &kvOutput{Body: api.KVEntry{Key: in.Key, Bytes: int64(len(value)), Value: value}}, nil
}

// deleteKV deletes a key. Errors: CodeKVNotFound.
func (a *API) deleteKV(ctx context.Context, in *kvInput) (*struct{}, error) {
	deleted, err := a.kv.Del(ctx, string(in.Tenant), string(in.Namespace), in.Key)
	if err == nil && !deleted {
		err = kvNotFound(in.Key)
	}
	return nil, err
}

func kvNotFound(key string) error {
	return api.Errorf(api.CodeKVNotFound, "key %q does not exist", key)
}
