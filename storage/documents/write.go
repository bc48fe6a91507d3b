package documents

import (
	"context"
	"errors"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/storage"
)

// schemaTries bounds how often a write begins anew because its namespace got another
// schema meanwhile.
const schemaTries = 5

// Put writes a document. Errors: CodeValidationFailed, CodeRevisionMismatch,
// CodeQuotaExceeded.
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

// Delete removes a document; one that is not there is none to remove, unless ifRevision
// asks for it. Errors: CodeValidationFailed, CodeRevisionMismatch, CodeDocumentNotFound.
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

// BulkPut writes up to api.MaxDocumentBulkItems documents, all or none. Errors:
// CodeValidationFailed for a request that is none, CodeBulkPartialFailure with the items
// that failed.
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
		if steps[i], err = newStep(api.DocumentStepPut, &bulk.Items[i], now); err != nil {
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

// bulkQuota says of a bulk what it says of a put: there is no room, for the items together.
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
// all or none. Where steps fail the error has the code of the first one, and all of them
// as items. Errors: CodeValidationFailed, CodeRevisionMismatch, CodeDocumentNotFound,
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

// checkItems bounds how many are written at once. It comes before a look at each of them:
// a request has room for hundreds of thousands.
func checkItems(list string, n int) error {
	if n == 0 || n > api.MaxDocumentBulkItems {
		return api.DocumentFieldError(list, fmt.Sprintf("must be from 1 to %d", api.MaxDocumentBulkItems))
	}
	return nil
}

// checkBulk bounds the bytes that are written at once.
func checkBulk(list string, steps []Step) error {
	size := 0
	for i := range steps {
		size += len(steps[i].Value) + len(steps[i].Metadata)
	}
	if size > api.MaxDocumentBulkBytes {
		return api.DocumentFieldError(list, fmt.Sprintf("exceed %d bytes together", api.MaxDocumentBulkBytes))
	}
	return nil
}

// repeated finds the steps whose key an earlier one has.
func repeated(steps []Step) []failure {
	var failures []failure
	seen := map[string]bool{}
	for i := range steps {
		if seen[steps[i].Key] && steps[i].Key != "" {
			failures = append(failures, failure{i, api.DocumentFieldError("key", "stands in an earlier item, too")})
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

// write checks values against the namespace's schema and has the store do all steps or
// none: in one round trip, for the schema that is known is most often the one that is.
// failures are those of single steps.
func (s *Service) write(ctx context.Context, p storage.DocumentPath, steps []Step) ([]Record, []failure, error) {
	digest, judge, err := s.schemaKnown(ctx, p)
	for tries := 0; err == nil; tries++ {
		if failures := checkAll(judge, steps); len(failures) > 0 {
			// It may be the schema of yesterday that they break.
			var current string
			if current, judge, err = s.loadSchema(ctx, p); err == nil && current == digest {
				return nil, failures, nil
			}
			digest = current
		} else {
			var written []Record
			if written, err = s.store.Write(ctx, p, steps, s.quota, digest, s.now()); err == nil {
				return written, nil, nil
			}
			if failures := storeFailures(err); len(failures) > 0 {
				return nil, failures, nil
			}
			if api.ErrorCode(err) == api.CodeStoreConflict {
				digest, judge, err = s.loadSchema(ctx, p)
			}
		}
		if err == nil && tries == schemaTries {
			err = api.Errorf(api.CodeStoreConflict, "the namespace's schema changes all the time")
		}
	}
	return nil, nil, Failure(err)
}

// checkAll finds the steps whose values break the schema, if there is one.
func checkAll(judge *schema.Schema, steps []Step) []failure {
	var failures []failure
	for i := range steps {
		if judge == nil || steps[i].Op != api.DocumentStepPut {
			continue
		}
		if err := judge.Check(steps[i].Value); err != nil {
			failures = append(failures, failure{i, err})
		}
	}
	return failures
}

// schemaKnown is what is remembered of a namespace's schema: its digest, "" for none.
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

// loadSchema reads a namespace's schema from the store, and remembers it.
func (s *Service) loadSchema(ctx context.Context, p storage.DocumentPath) (string, *schema.Schema, error) {
	raw, digest, err := s.store.Schema(ctx, p)
	if err != nil {
		return "", nil, err
	}
	if digest == "" {
		s.digests.Invalidate(p)
		return "", nil, nil
	}
	loaded, err := s.schemas.Get(digest, raw)
	if err != nil {
		return "", nil, err
	}
	s.digests.Set(p, digest)
	return digest, loaded, nil
}
