package documents

import (
	"context"
	"unicode/utf8"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/storage"
)

// namespace converts a Namespace to its form in the API.
func (s *Service) namespace(n *Namespace) api.DocumentNamespace {
	return api.DocumentNamespace{
		Namespace: n.Name, HasSchema: n.Schema != "",
		Use: api.DocumentUse{
			Records: n.Use.Records, Bytes: n.Use.Bytes,
			MaxRecords: s.quota.NamespaceRecords, MaxBytes: s.quota.NamespaceBytes,
		},
	}
}

// Namespaces returns an install's namespaces by name.
func (s *Service) Namespaces(ctx context.Context, tenant, install string) ([]api.DocumentNamespace, error) {
	if err := s.enterInstall(tenant, install); err != nil {
		return nil, err
	}
	found, err := s.store.Namespaces(ctx, tenant, install)
	if err != nil {
		return nil, Failure(err)
	}
	out := make([]api.DocumentNamespace, len(found))
	for i := range found {
		out[i] = s.namespace(&found[i])
	}
	return out, nil
}

// Namespace returns one namespace of an install. CodeDocumentNotFound.
func (s *Service) Namespace(ctx context.Context, tenant, install, namespace string) (*api.DocumentNamespace, error) {
	if err := api.ValidateDocumentNamespace(namespace); err != nil {
		return nil, err
	}
	all, err := s.Namespaces(ctx, tenant, install)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Namespace == namespace {
			return &all[i], nil
		}
	}
	return nil, noNamespace(namespace)
}

func noNamespace(namespace string) error {
	return api.Errorf(api.CodeDocumentNotFound, "namespace %q does not exist", namespace)
}

// TenantUse returns the amount that all namespaces of a tenant hold together, with its
// limits.
func (s *Service) TenantUse(ctx context.Context, tenant string) (*api.DocumentUse, error) {
	if err := api.ValidateTenant(tenant); err != nil {
		return nil, Failure(err)
	}
	_, all, err := s.store.Use(ctx, storage.DocumentPath{Tenant: tenant, Install: "any", Namespace: "any"})
	if err != nil {
		return nil, Failure(err)
	}
	return &api.DocumentUse{Records: all.Records, Bytes: all.Bytes, MaxRecords: s.quota.TenantRecords, MaxBytes: s.quota.TenantBytes}, nil
}

const (
	// clearRecords is the number of documents that one step of a deletion removes.
	clearRecords = 1000
	// clearTries is the number of steps that may find fewer than that before a deletion
	// stops: other callers write as fast as it removes.
	clearTries = 10
)

// DeleteNamespace removes a namespace with its documents and its schema, in steps.
// Documents that are written meanwhile may remain. CodeDocumentNotFound; CodeStoreConflict
// where other callers write faster than it removes.
func (s *Service) DeleteNamespace(ctx context.Context, tenant, install, namespace string) error {
	if _, err := s.Namespace(ctx, tenant, install, namespace); err != nil {
		return err
	}
	p := storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace}
	defer s.digests.Invalidate(p)
	return remove(func() (int, bool, error) { return s.store.Clear(ctx, p, clearRecords) })
}

// remove takes the steps of a deletion until one of them reports that nothing is left. It stops
// with CodeStoreConflict where other callers keep writing. A deletion that is interrupted
// between two steps has removed some documents; the same call continues.
func remove(step func() (removed int, more bool, err error)) error {
	for idle := 0; idle < clearTries; {
		removed, more, err := step()
		if err != nil || !more {
			return Failure(err)
		}
		if removed < clearRecords {
			idle++ // the rest was written meanwhile
		}
	}
	return api.Errorf(api.CodeStoreConflict, "other callers keep writing documents to it")
}

// SetSchema stores the JSON Schema of a namespace, which it creates if necessary. Later writes,
// on every replica, must satisfy it; stored documents are not checked. CodeDocumentInvalid for
// a schema that cannot be compiled; CodeQuotaExceeded.
func (s *Service) SetSchema(ctx context.Context, tenant, install, namespace string, raw []byte) error {
	p, err := s.enter(tenant, install, namespace)
	if err != nil {
		return err
	}
	if !utf8.Valid(raw) { // the API returns it unchanged
		return api.DocumentFieldError("schema", "is not UTF-8")
	}
	compiled, err := schema.Compile(raw)
	if err != nil {
		return err
	}
	digest, err := s.store.SetSchema(ctx, p, raw, s.quota, s.now())
	if err != nil {
		return Failure(err)
	}
	s.schemas.Keep(digest, compiled)
	s.digests.Set(p, digest)
	return nil
}

// Schema returns a namespace's schema. CodeDocumentNotFound.
func (s *Service) Schema(ctx context.Context, tenant, install, namespace string) ([]byte, error) {
	p, err := s.enter(tenant, install, namespace)
	if err != nil {
		return nil, err
	}
	raw, digest, err := s.store.Schema(ctx, p)
	if err == nil && digest == "" {
		err = noSchema(namespace)
	}
	return raw, Failure(err)
}

// DeleteSchema removes the schema of a namespace: later writes may have any value. A write
// that another replica has checked against it meanwhile starts again. CodeDocumentNotFound.
func (s *Service) DeleteSchema(ctx context.Context, tenant, install, namespace string) error {
	p, err := s.enter(tenant, install, namespace)
	if err != nil {
		return err
	}
	existed, err := s.store.DeleteSchema(ctx, p)
	s.digests.Invalidate(p)
	if err == nil && !existed {
		err = noSchema(namespace)
	}
	return Failure(err)
}

func noSchema(namespace string) error {
	return api.Errorf(api.CodeDocumentNotFound, "the namespace %q has no schema", namespace)
}
