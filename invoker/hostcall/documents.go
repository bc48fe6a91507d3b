package hostcall

import (
	"context"
	"errors"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/httpstatus"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/storage/documents"
)

// Documents is the document storage: documents.Service, as far as functions use it. tenant
// and install select the documents; neither comes from the script. The errors are those of
// documents.Service, and get the form for scripts in documentFailure.
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

// documentCalls serves cs.storage. documents is nil where the replica has no document
// storage. Its errors differ from those of the other calls: they have the codes and the
// members of the REST API of documents, so that code written for one works with the other.
type documentCalls struct {
	documents Documents
}

// handleDocument makes the call of an operation. Its request is the blob: the bytes of a
// document count as the script wrote them, and decoding and encoding them again could
// change their number. namespace returns the namespace of a request, by which permit
// decides.
func handleDocument[A any](c *documentCalls, declared wire.DocumentCall, namespace func(*A) string,
	run func(ctx context.Context, s *Scope, install string, request A) (any, []byte, error),
) call {
	return call{
		decode: func(_, blob []byte) (any, error) {
			if len(blob) > api.MaxRequestBytes {
				return nil, api.Errorf(api.CodeBodyLimit, "a request is at most %s of JSON", api.SizeText(api.MaxRequestBytes))
			}
			var request A
			if err := documents.Decode(blob, &request); err != nil {
				return nil, err
			}
			return request, nil
		},
		permit: func(s *Scope, args any) string {
			request := args.(A)
			return permitDocuments(s, declared.Op, namespace(&request))
		},
		run: func(ctx context.Context, s *Scope, args any, _ []byte) (any, []byte, error) {
			install, err := c.install(ctx, s)
			if err != nil {
				return nil, nil, err
			}
			return run(ctx, s, install, args.(A))
		},
		denied:  api.CodeStorageDenied,
		failure: documentFailure,
	}
}

// calls returns the six operations. Get and list need functions of their own because of the
// form of their replies; the others pass their result on.
func (c *documentCalls) calls() map[string]call {
	return map[string]call{
		wire.DocumentPut.Name(): handleDocument(c, wire.DocumentPut, func(r *api.DocumentPut) string { return r.Namespace },
			func(ctx context.Context, s *Scope, install string, r api.DocumentPut) (any, []byte, error) {
				return replyHead(c.documents.Put(ctx, s.Tenant, install, r))
			}),
		wire.DocumentGet.Name():  handleDocument(c, wire.DocumentGet, func(r *api.DocumentGet) string { return r.Namespace }, c.get),
		wire.DocumentList.Name(): handleDocument(c, wire.DocumentList, func(r *api.DocumentList) string { return r.Namespace }, c.list),
		wire.DocumentDelete.Name(): handleDocument(c, wire.DocumentDelete, func(r *api.DocumentDelete) string { return r.Namespace },
			func(ctx context.Context, s *Scope, install string, r api.DocumentDelete) (any, []byte, error) {
				return wire.None{}, nil, c.documents.Delete(ctx, s.Tenant, install, r)
			}),
		wire.DocumentBulkPut.Name(): handleDocument(c, wire.DocumentBulkPut, func(r *api.DocumentBulkPut) string { return r.Namespace },
			func(ctx context.Context, s *Scope, install string, r api.DocumentBulkPut) (any, []byte, error) {
				return replyHead(c.documents.BulkPut(ctx, s.Tenant, install, r))
			}),
		wire.DocumentTransact.Name(): handleDocument(c, wire.DocumentTransact, func(r *api.DocumentTransact) string { return r.Namespace },
			func(ctx context.Context, s *Scope, install string, r api.DocumentTransact) (any, []byte, error) {
				return replyHead(c.documents.Transact(ctx, s.Tenant, install, r))
			}),
	}
}

// replyHead returns an operation's result as the head of the reply.
func replyHead[A any](out *A, err error) (any, []byte, error) {
	if err != nil {
		return nil, nil, err // out is a nil pointer, which is no nil any
	}
	return out, nil, nil
}

// permitDocuments compares the operation and the exact namespace; only operations have a
// "*". A malformed name of a namespace passes: the storage refuses it with a better reason.
func permitDocuments(s *Scope, op, namespace string) string {
	if api.ValidateDocumentNamespace(namespace) != nil {
		return ""
	}
	if c := s.Capabilities.Storage; c != nil && allows(c.Ops, op) && slices.Contains(c.Namespaces, namespace) {
		return ""
	}
	return `{"storage": {"namespaces": [` + quoted(namespace) + `], "ops": [` + quoted(op) + `]}}`
}

// install returns the install whose documents the function uses: its own,
// fn.<namespace>.<function>, or the one that its manifest names, which must be registered
// for it. The storage is asked for that once an activation; a registration that ends
// meanwhile counts from the next activation on. Errors: CodeStorageInternal without a
// storage, CodeStorageDenied.
func (c *documentCalls) install(ctx context.Context, s *Scope) (string, error) {
	if c.documents == nil {
		return "", api.Errorf(api.CodeStorageInternal, "this replica has no document storage")
	}
	own := api.FunctionInstall(s.Namespace, s.Function)
	allowed := s.Capabilities.Storage
	if allowed == nil || allowed.Install == "" || allowed.Install == own {
		return own, nil
	}
	s.install.mu.Lock()
	defer s.install.mu.Unlock()
	if !s.install.granted {
		if err := c.documents.MayUse(ctx, s.Tenant, allowed.Install, s.Namespace, s.Function); err != nil {
			return "", err
		}
		s.install.granted = true
	}
	return allowed.Install, nil
}

// get returns the value as it is stored, as the blob.
func (c *documentCalls) get(ctx context.Context, s *Scope, install string, r api.DocumentGet) (any, []byte, error) {
	found, err := c.documents.Get(ctx, s.Tenant, install, r)
	if err != nil {
		return nil, nil, err
	}
	value := found.Value
	found.Value = nil
	return found, value, nil
}

// listItemBytes is the largest size of a document in a list, without its value.
const listItemBytes = api.MaxDocumentMetadataBytes + 1<<10

// list returns a page as the blob. A page with values or metadata may be large, so its room
// is reserved first, by the largest size that its limit allows, unless that is at most
// smallReply: 25 documents with values reserve 1.8 MB.
func (c *documentCalls) list(ctx context.Context, s *Scope, install string, r api.DocumentList) (any, []byte, error) {
	if r.IncludeValues || r.IncludeMetadata {
		limit := r.Limit
		if limit == 0 {
			limit = api.DefaultDocumentPage
		}
		each := listItemBytes
		if r.IncludeValues {
			each += api.MaxDocumentValueBytes
		}
		if room := int64(min(max(limit, 1), api.MaxDocumentPage) * each); room > smallReply {
			if err := sandbox.ReserveReply(ctx, room); err != nil {
				return nil, nil, err
			}
		}
	}
	page, err := c.documents.List(ctx, s.Tenant, install, r)
	if err != nil {
		return nil, nil, err
	}
	raw, err := api.EncodeJSON(page)
	return wire.None{}, raw, err
}

// documentFailure returns an operation's error as the REST API answers it: with the HTTP
// status and the other members of a problem. A script sees e.code, e.status and, where they
// apply, e.errors, e.items and e.quota. The end of the activation keeps its own code,
// CodeRuntimeTimeout.
func documentFailure(err error) error {
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
	}{httpstatus.Of(coded.Code), coded.Fields, coded.Items, coded.Quota}
	return &sandbox.HostError{Refusal: api.Errorf(coded.Code, "%s", coded.Message), Members: mustJSON(members)}
}
