package documents

import (
	"context"
	"errors"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/storage"
)

// schemaTries is how often a write is repeated because the schema of its namespace has
// changed meanwhile.
const schemaTries = 5

// Put creates or replaces a document: value, metadata and time to live together. It returns
// the document without value and metadata. The value must satisfy the namespace's schema, if
// it has one. CodeDocumentInvalid, CodeRevisionMismatch, CodeQuotaExceeded. After
// CodeStoreUnavailable the document may have been written; a conditional Put is not sent to
// the store twice.
func (s *Service) Put(ctx context.Context, tenant, install string, put api.DocumentPut) (_ *api.Document, err error) {
	defer s.metrics.done("put", &err)
	p, err := s.enter(tenant, install, put.Namespace)
	if err != nil {
		return nil, err
	}
	step, err := newStep(api.DocumentStepPut, &put.DocumentItem, s.now())
	if err != nil {
		return nil, err
	}
	written, failures, err := s.write(ctx, p, []Step{step})
	if len(failures) > 0 {
		return nil, failures[0].err
	}
	if err != nil {
		return nil, err
	}
	d := document(p, &written[0])
	return &d, nil
}

// Delete removes a document. A missing document is an error only with ifRevision.
// CodeDocumentInvalid, CodeRevisionMismatch, CodeDocumentNotFound.
func (s *Service) Delete(ctx context.Context, tenant, install string, del api.DocumentDelete) (err error) {
	defer s.metrics.done("delete", &err)
	p, err := s.enter(tenant, install, del.Namespace)
	if err != nil {
		return err
	}
	step, err := newStep(api.DocumentStepDelete, &api.DocumentItem{Key: del.Key, IfRevision: del.IfRevision}, s.now())
	if err != nil {
		return err
	}
	_, failures, err := s.write(ctx, p, []Step{step})
	if len(failures) > 0 {
		return failures[0].err
	}
	return err
}

// BulkPut writes up to api.MaxDocumentBulkItems documents, all or none.
// CodeDocumentInvalid for an invalid request, CodeBulkPartialFailure with the items that
// failed: an invalid item, another revision, a repeated key, or every item where the quota is
// exceeded.
func (s *Service) BulkPut(ctx context.Context, tenant, install string, bulk api.DocumentBulkPut) (_ *api.DocumentResults, err error) {
	defer s.metrics.done("bulkPut", &err)
	p, err := s.enter(tenant, install, bulk.Namespace)
	if err != nil {
		return nil, err
	}
	if err := checkItems("items", len(bulk.Items)); err != nil {
		return nil, err
	}
	now := s.now()
	steps := make([]Step, len(bulk.Items))
	var failures []failure
	for i := range bulk.Items {
		steps[i], err = newStep(api.DocumentStepPut, &bulk.Items[i], now)
		if err != nil {
			failures = append(failures, failure{i, err})
		}
	}
	if err := checkBulk("items", steps); err != nil {
		return nil, err
	}
	failures = append(failures, repeated(steps)...)
	var written []Record
	if len(failures) == 0 {
		written, failures, err = s.write(ctx, p, steps)
	}
	if api.ErrorCode(err) == api.CodeQuotaExceeded {
		return nil, bulkQuota(err, len(steps))
	}
	if len(failures) > 0 {
		return nil, failed(api.CodeBulkPartialFailure, "items", failures)
	}
	return results(written), err
}

// bulkQuota converts an exceeded quota to the error of a bulk, in which every item failed.
func bulkQuota(err error, items int) error {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return err
	}
	e := &api.Error{Code: api.CodeBulkPartialFailure, Message: refused.Message, Quota: refused.Quota}
	for i := range items {
		e.Items = append(e.Items, api.ItemError{Index: i, Code: refused.Code})
	}
	return e
}

// Transact checks and writes up to api.MaxDocumentBulkItems documents of one namespace,
// all or none. Where steps fail, the error has the code of the first one and an item for
// each. CodeDocumentInvalid, CodeRevisionMismatch, CodeDocumentNotFound,
// CodeQuotaExceeded.
func (s *Service) Transact(ctx context.Context, tenant, install string, t api.DocumentTransact) (_ *api.DocumentResults, err error) {
	defer s.metrics.done("transact", &err)
	p, err := s.enter(tenant, install, t.Namespace)
	if err != nil {
		return nil, err
	}
	if err := checkItems("operations", len(t.Operations)); err != nil {
		return nil, err
	}
	now := s.now()
	steps := make([]Step, len(t.Operations))
	var failures []failure
	for i := range t.Operations {
		step := &t.Operations[i]
		switch step.Op {
		case api.DocumentStepPut, api.DocumentStepCheck, api.DocumentStepDelete:
			steps[i], err = newStep(step.Op, &step.DocumentItem, now)
		default:
			err = api.DocumentFieldError("op", "must be check, put or delete")
		}
		if err != nil {
			failures = append(failures, failure{i, err})
		}
	}
	if err := checkBulk("operations", steps); err != nil {
		return nil, err
	}
	failures = append(failures, repeated(steps)...)
	var written []Record
	if len(failures) == 0 {
		written, failures, err = s.write(ctx, p, steps)
	}
	if len(failures) > 0 {
		return nil, failed("", "operations", failures)
	}
	return results(written), err
}

// checkItems limits the number of items. It precedes every check of single items: a
// request has room for hundreds of thousands.
func checkItems(list string, n int) error {
	if n == 0 || n > api.MaxDocumentBulkItems {
		return api.DocumentFieldError(list, fmt.Sprintf("must be from 1 to %d", api.MaxDocumentBulkItems))
	}
	return nil
}

// checkBulk limits the bytes of all items together.
func checkBulk(list string, steps []Step) error {
	size := 0
	for i := range steps {
		size += len(steps[i].Value) + len(steps[i].Metadata)
	}
	if size > api.MaxDocumentBulkBytes {
		return api.DocumentFieldError(list, "exceed "+api.SizeText(api.MaxDocumentBulkBytes)+" together")
	}
	return nil
}

// repeated returns a failure for each step whose key an earlier step has.
func repeated(steps []Step) []failure {
	var failures []failure
	seen := map[string]bool{}
	for i := range steps {
		if seen[steps[i].Key] && steps[i].Key != "" {
			failures = append(failures, failure{i, api.DocumentFieldError("key", "is repeated: an earlier item has the same key")})
		}
		seen[steps[i].Key] = true
	}
	return failures
}

func results(written []Record) *api.DocumentResults {
	out := &api.DocumentResults{Items: make([]api.DocumentResult, len(written))}
	for i := range written {
		d := &written[i]
		out.Items[i] = api.DocumentResult{Key: d.Key, Revision: d.Revision, TTLExpiresAt: moment(d.ExpiresAtMS)}
	}
	return out
}

// write checks values against the schema of the namespace and writes all steps or none. It
// takes one round trip where the cached schema is current. failures are the failures of
// single steps; with failures the error is nil and nothing was written.
//
// The schema can change between the check and the write. The script therefore compares the
// digest of the schema that was used with the stored one, and CodeStoreConflict starts again
// with the stored schema. A violation is only final if the schema is the stored one.
func (s *Service) write(ctx context.Context, p storage.DocumentPath, steps []Step) ([]Record, []failure, error) {
	digest, rules, err := s.schemaKnown(ctx, p)
	for tries := 0; err == nil; tries++ {
		if failures := checkAll(rules, steps); len(failures) > 0 {
			// The cached schema may be outdated: compare it with the stored one.
			var current string
			current, rules, err = s.loadSchema(ctx, p)
			if err == nil && current == digest {
				return nil, failures, nil
			}
			digest = current
		} else {
			var written []Record
			written, err = s.store.Write(ctx, p, steps, s.quota, digest, s.now())
			if err == nil {
				return written, nil, nil
			}
			if failures := storeFailures(err); len(failures) > 0 {
				return nil, failures, nil
			}
			if api.ErrorCode(err) == api.CodeStoreConflict {
				digest, rules, err = s.loadSchema(ctx, p)
			}
		}
		if err == nil && tries == schemaTries {
			err = api.Errorf(api.CodeStoreConflict, "the schema of the namespace keeps changing")
		}
	}
	return nil, nil, Failure(err)
}

// checkAll returns a failure for each step whose value violates the schema. A nil schema
// accepts all.
func checkAll(rules *schema.Schema, steps []Step) []failure {
	var failures []failure
	budget := schema.NewBudget()
	for i := range steps {
		if rules == nil || steps[i].Op != api.DocumentStepPut {
			continue
		}
		if err := rules.CheckWithin(steps[i].Value, budget); err != nil {
			failures = append(failures, failure{i, err})
		}
	}
	return failures
}

// schemaKnown returns the cached schema of a namespace and its digest, "" where none is
// cached.
func (s *Service) schemaKnown(ctx context.Context, p storage.DocumentPath) (string, *schema.Schema, error) {
	digest, has := s.digests.GetIfPresent(p)
	if !has {
		return "", nil, nil
	}
	if known, has := s.schemas.Known(digest); has {
		return digest, known, nil
	}
	return s.loadSchema(ctx, p)
}

// loadSchema reads the schema of a namespace from the store and caches it.
func (s *Service) loadSchema(ctx context.Context, p storage.DocumentPath) (string, *schema.Schema, error) {
	raw, digest, err := s.store.Schema(ctx, p)
	if err != nil {
		return "", nil, err
	}
	if digest == "" {
		s.digests.Invalidate(p)
		return "", nil, nil
	}
	loaded, err := s.schemas.Get(digest, raw, nil)
	if err != nil {
		return "", nil, err
	}
	s.digests.Set(p, digest)
	return digest, loaded, nil
}
