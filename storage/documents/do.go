package documents

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/codesous/sous/api"
)

// operationPrefix is an optional prefix of the names of operations.
const operationPrefix = "storage."

// Do executes the named operation with the request in body: put, get, list, delete, bulkPut or
// transact, each also with the prefix "storage.". It returns the answer, nil for an operation
// without one. CodeDocumentInvalid for an unknown name, and the errors of
// the operation.
func (s *Service) Do(ctx context.Context, tenant, install, operation string, body json.RawMessage) (any, error) {
	switch strings.TrimPrefix(operation, operationPrefix) {
	case "put":
		return do(ctx, body, tenant, install, s.Put)
	case "get":
		return do(ctx, body, tenant, install, s.Get)
	case "list":
		return do(ctx, body, tenant, install, s.List)
	case "bulkPut":
		return do(ctx, body, tenant, install, s.BulkPut)
	case "transact":
		return do(ctx, body, tenant, install, s.Transact)
	case "delete":
		var request api.DocumentDelete
		if err := Decode(body, &request); err != nil {
			return nil, err
		}
		return nil, s.Delete(ctx, tenant, install, request)
	}
	return nil, api.DocumentFieldError("operation", "must be put, get, list, delete, bulkPut or transact")
}

// do decodes body into the request of call and returns its answer.
func do[I, O any](ctx context.Context, body []byte, tenant, install string, call func(context.Context, string, string, I) (*O, error)) (any, error) {
	var request I
	if err := Decode(body, &request); err != nil {
		return nil, err
	}
	out, err := call(ctx, tenant, install, request)
	if err != nil {
		return nil, err // not a typed nil pointer
	}
	return out, nil
}
