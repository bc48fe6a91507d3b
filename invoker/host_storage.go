package invoker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/storage/documents"
)

// Documents is the document storage: documents.Service, as far as functions use it.
type Documents interface {
	Put(ctx context.Context, tenant, install string, put api.DocumentPut) (*api.Document, error)
	Get(ctx context.Context, tenant, install string, get api.DocumentGet) (*api.Document, error)
	List(ctx context.Context, tenant, install string, list api.DocumentList) (*api.DocumentPage, error)
	Delete(ctx context.Context, tenant, install string, del api.DocumentDelete) error
	BulkPut(ctx context.Context, tenant, install string, bulk api.DocumentBulkPut) (*api.DocumentResults, error)
	Transact(ctx context.Context, tenant, install string, t api.DocumentTransact) (*api.DocumentResults, error)
	// MayUse refuses (CodeStorageDenied) an install that is not for the function.
	MayUse(ctx context.Context, tenant, install, namespace, function string) error
}

// storageHost serves cs.storage. documents is nil where there is no such storage.
type storageHost struct {
	documents Documents
}

// installUse remembers that an activation may use its install.
type installUse struct {
	mu      sync.Mutex
	granted bool
}

// storageRow makes the row of an operation. Its request is the call's blob, so that
// values travel as they are written: their bytes count.
func storageRow[A any](op string, namespace func(*A) string, run func(ctx context.Context, s *scope, install string, request A) (any, []byte, error), h *storageHost) hostCall {
	return hostCall{
		decode: func(_, blob []byte) (any, error) {
			if len(blob) > api.MaxRequestBytes {
				return nil, api.Errorf(api.CodeBodyLimit, "a request is at most %d bytes of JSON", api.MaxRequestBytes)
			}
			var request A
			if err := documents.Decode(blob, &request); err != nil {
				return nil, err
			}
			return request, nil
		},
		permit: func(s *scope, args any) string {
			request := args.(A)
			return permitStorage(s, op, namespace(&request))
		},
		run: func(ctx context.Context, s *scope, args any, _ []byte) (any, []byte, error) {
			install, err := h.install(ctx, s)
			if err != nil {
				return nil, nil, err
			}
			return run(ctx, s, install, args.(A))
		},
		denied:  api.CodeStorageDenied,
		failure: storageFailure,
	}
}

// rows are the operations of the storage's contract.
func (h *storageHost) rows() map[string]hostCall {
	return map[string]hostCall{
		"storage.put": storageRow("put", func(r *api.DocumentPut) string { return r.Namespace },
			func(ctx context.Context, s *scope, install string, r api.DocumentPut) (any, []byte, error) {
				return answer(h.documents.Put(ctx, s.tenant, install, r))
			}, h),
		"storage.get": storageRow("get", func(r *api.DocumentGet) string { return r.Namespace }, h.get, h),
		"storage.list": storageRow("list", func(r *api.DocumentList) string { return r.Namespace },
			h.list, h),
		"storage.delete": storageRow("delete", func(r *api.DocumentDelete) string { return r.Namespace },
			func(ctx context.Context, s *scope, install string, r api.DocumentDelete) (any, []byte, error) {
				return struct{}{}, nil, h.documents.Delete(ctx, s.tenant, install, r)
			}, h),
		"storage.bulkPut": storageRow("bulkPut", func(r *api.DocumentBulkPut) string { return r.Namespace },
			func(ctx context.Context, s *scope, install string, r api.DocumentBulkPut) (any, []byte, error) {
				return answer(h.documents.BulkPut(ctx, s.tenant, install, r))
			}, h),
		"storage.transact": storageRow("transact", func(r *api.DocumentTransact) string { return r.Namespace },
			func(ctx context.Context, s *scope, install string, r api.DocumentTransact) (any, []byte, error) {
				return answer(h.documents.Transact(ctx, s.tenant, install, r))
			}, h),
	}
}

// answer is an answer that goes as it is.
func answer[A any](out *A, err error) (any, []byte, error) {
	if err != nil {
		return nil, nil, err // and no pointer to nothing
	}
	return out, nil, nil
}

// permitStorage wants the operation and the namespace, by its exact name. What is no
// name of a namespace is refused by the storage, with a better reason.
func permitStorage(s *scope, op, namespace string) string {
	if api.ValidateDocumentNamespace(namespace) != nil {
		return ""
	}
	if c := s.capabilities.Storage; c != nil && allows(c.Ops, op) && slices.Contains(c.Namespaces, namespace) {
		return ""
	}
	return `{"storage": {"namespaces": [` + quoted(namespace) + `], "ops": [` + quoted(op) + `]}}`
}

// install is whose documents the function works with: its own, or the one that its
// manifest names, which must be registered for it. That is asked once an activation.
func (h *storageHost) install(ctx context.Context, s *scope) (string, error) {
	if h.documents == nil {
		return "", api.Errorf(api.CodeStorageInternal, "this replica has no document storage")
	}
	own := api.FunctionInstall(s.namespace, s.function)
	c := s.capabilities.Storage
	if c == nil || c.Install == "" || c.Install == own {
		return own, nil
	}
	s.installs.mu.Lock()
	defer s.installs.mu.Unlock()
	if !s.installs.granted {
		if err := h.documents.MayUse(ctx, s.tenant, c.Install, s.namespace, s.function); err != nil {
			return "", err
		}
		s.installs.granted = true
	}
	return c.Install, nil
}

// get answers the value as it is stored, beside the rest.
func (h *storageHost) get(ctx context.Context, s *scope, install string, r api.DocumentGet) (any, []byte, error) {
	found, err := h.documents.Get(ctx, s.tenant, install, r)
	if err != nil {
		return nil, nil, err
	}
	value := found.Value
	found.Value = nil
	return found, value, nil
}

// listItemBytes is what a document in a list takes at most beside its value.
const listItemBytes = api.MaxDocumentMetadataBytes + 1<<10

func (h *storageHost) list(ctx context.Context, s *scope, install string, r api.DocumentList) (any, []byte, error) {
	if r.IncludeValues || r.IncludeMetadata {
		limit := r.Limit
		if limit == 0 {
			limit = api.DefaultDocumentPage
		}
		each := listItemBytes
		if r.IncludeValues {
			each += api.MaxDocumentValueBytes
		}
		if room := int64(min(max(limit, 1), api.MaxDocumentPage) * each); room > smallFetchResponse {
			if err := sandbox.ReserveReply(ctx, room); err != nil {
				return nil, nil, err
			}
		}
	}
	page, err := h.documents.List(ctx, s.tenant, install, r)
	if err != nil {
		return nil, nil, err
	}
	raw, err := api.EncodeJSON(page)
	return struct{}{}, raw, err
}

// storageStatuses is the contract's table of codes, and what the platform's other
// codes are over REST.
var storageStatuses = map[api.Code]int{
	api.CodeRevisionMismatch:   http.StatusConflict,
	api.CodeQuotaExceeded:      http.StatusTooManyRequests,
	api.CodeValidationFailed:   http.StatusBadRequest,
	api.CodeDocumentNotFound:   http.StatusNotFound,
	api.CodeStorageDenied:      http.StatusForbidden,
	api.CodeRateLimited:        http.StatusTooManyRequests,
	api.CodeStorageInternal:    http.StatusInternalServerError,
	api.CodeBulkPartialFailure: http.StatusConflict,
	api.CodeStoreUnavailable:   http.StatusServiceUnavailable,
	api.CodeStoreConflict:      http.StatusConflict,
	api.CodeBodyLimit:          http.StatusRequestEntityTooLarge,
}

// storageFailure tells a function why an operation failed, as the REST API would: the
// status too, and what stands beside code and message in a problem.
func storageFailure(err error) error {
	err = documents.Failure(err)
	if ended := publicError(err); api.ErrorCode(ended) == api.CodeRuntimeTimeout {
		return ended
	}
	var coded *api.Error
	if !errors.As(err, &coded) {
		coded = api.Errorf(api.CodeStorageInternal, "an internal error")
	}
	members := struct {
		Status int              `json:"status"`
		Errors []api.FieldError `json:"errors,omitempty"`
		Items  []api.ItemError  `json:"items,omitempty"`
		Quota  *api.QuotaUse    `json:"quota,omitempty"`
	}{storageStatuses[coded.Code], coded.Fields, coded.Items, coded.Quota}
	if members.Status == 0 {
		members.Status = http.StatusInternalServerError
	}
	return &sandbox.HostError{Refusal: api.Errorf(coded.Code, "%s", coded.Message), Members: mustJSON(members)}
}
