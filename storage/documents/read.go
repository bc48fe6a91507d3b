package documents

import (
	"context"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Get returns a document. CodeDocumentInvalid, CodeDocumentNotFound, and
// CodeRevisionMismatch where the document has another revision than the request names.
func (s *Service) Get(ctx context.Context, tenant, install string, get api.DocumentGet) (_ *api.Document, err error) {
	defer s.metrics.done("get", &err)
	p, err := s.enter(tenant, install, get.Namespace)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateDocumentKey(get.Key); err != nil {
		return nil, err
	}
	if get.IfRevision != nil && *get.IfRevision < 0 {
		return nil, api.DocumentFieldError("ifRevision", "must be 0 or more")
	}
	found, err := s.store.Get(ctx, p, get.Key, s.now())
	if err != nil {
		return nil, Failure(err)
	}
	if get.IfRevision != nil && *get.IfRevision != found.Revision {
		return nil, api.Errorf(api.CodeRevisionMismatch, "the document has the revision %d", found.Revision)
	}
	d := document(p, found)
	d.Value, d.Metadata = found.Value, found.Metadata
	return &d, nil
}

// List returns a page of documents in the byte order of their keys. With a filter a page may
// be short, even empty, and still have a cursor. A list of several pages is not one moment:
// documents that are written between them appear or not, but a document that exists
// throughout appears once. CodeDocumentInvalid, also for the cursor of another query.
func (s *Service) List(ctx context.Context, tenant, install string, list api.DocumentList) (_ *api.DocumentPage, err error) {
	defer s.metrics.done("list", &err)
	p, err := s.enter(tenant, install, list.Namespace)
	if err != nil {
		return nil, err
	}
	q, err := s.query(p, &list)
	if err != nil {
		return nil, err
	}
	found, next, err := s.store.Page(ctx, p, q, s.now())
	if err != nil {
		return nil, Failure(err)
	}
	page := &api.DocumentPage{Items: make([]api.Document, len(found)), NextCursor: s.cursors.seal(p, &list, next)}
	for i := range found {
		page.Items[i] = document(p, &found[i])
		if list.IncludeMetadata {
			page.Items[i].Metadata = found[i].Metadata
		}
		if list.IncludeValues {
			page.Items[i].Value = found[i].Value
		}
	}
	return page, nil
}

// query converts a listing to a Query of the repository.
func (s *Service) query(p storage.DocumentPath, list *api.DocumentList) (q Query, err error) {
	if list.Limit < 0 || list.Limit > api.MaxDocumentPage {
		return q, api.DocumentFieldError("limit", fmt.Sprintf("must be from 1 to %d", api.MaxDocumentPage))
	}
	if err := api.ValidateDocumentPrefix(list.KeyPrefix); err != nil {
		return q, err
	}
	f, err := newFilter(list)
	if err != nil {
		return q, err
	}
	q = Query{Prefix: list.KeyPrefix, Limit: list.Limit, Values: list.IncludeValues}
	if len(f) > 0 {
		q.Match = func(d *Record) bool { return f.matches(d.Metadata) }
	}
	q.After, err = s.cursors.open(p, list)
	return q, err
}
