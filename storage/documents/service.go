package documents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/schema"
	"github.com/codesous/sous/storage"
)

// Config is what a Service can be told.
type Config struct {
	// Quota bounds what namespaces and tenants hold; zero members do not.
	Quota Quota
	// Rate is how many operations a tenant may do each second on this replica (0: any).
	Rate float64
	// Clock tells the time of expiry (default: time.Now).
	Clock func() time.Time
	// Metrics is where the operations are counted (default: nowhere).
	Metrics prometheus.Registerer
}

// Service does the operations of the document storage. Each checks its request, and fails
// with the codes of the storage's contract, CodeStoreUnavailable, or ctx's own error. Who
// may ask is the caller's to know. It is safe for concurrent use.
type Service struct {
	store   *Repository
	quota   Quota
	clock   func() time.Time
	rates   rates
	cursors cursors
	schemas *schema.Cache
	// digests are those of the schemas of namespaces that have one, as far as is known; the
	// store says at each write whether it still is so.
	digests *otter.Cache[storage.DocumentPath, string]
	metrics *serviceMetrics
}

// knownNamespaces bounds the digests that are remembered.
const knownNamespaces = 10_000

// New makes a service over a store. ctx bounds the call alone.
func New(ctx context.Context, store *storage.Store, cfg Config) (*Service, error) {
	if store == nil {
		return nil, errors.New("documents: a store is required")
	}
	q := cfg.Quota
	if min(q.NamespaceRecords, q.NamespaceBytes, q.TenantRecords, q.TenantBytes) < 0 {
		return nil, errors.New("documents: a quota cannot be negative")
	}
	if cfg.Rate < 0 || math.IsNaN(cfg.Rate) || math.IsInf(cfg.Rate, 0) {
		return nil, fmt.Errorf("documents: %g operations a second", cfg.Rate)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s := &Service{
		store: NewRepository(store), quota: cfg.Quota, clock: cfg.Clock,
		rates:   rates{each: cfg.Rate, clock: cfg.Clock, tenants: map[string]*bucket{}},
		schemas: schema.NewCache(),
		digests: otter.Must(&otter.Options[storage.DocumentPath, string]{MaximumSize: knownNamespaces}),
		metrics: newServiceMetrics(),
	}
	key, err := s.store.CursorKey(ctx)
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	s.cursors = cursors{key}
	return s, s.metrics.register(cfg.Metrics)
}

// DefaultQuota is that of a service of which nothing is said.
func DefaultQuota() Quota {
	return Quota{
		NamespaceRecords: api.DefaultNamespaceRecords, NamespaceBytes: api.DefaultNamespaceBytes,
		TenantRecords: api.DefaultTenantRecords, TenantBytes: api.DefaultTenantBytes,
	}
}

// now is the time in milliseconds since 1970.
func (s *Service) now() int64 { return s.clock().UnixMilli() }

// path is a namespace whose names are checked. CodeValidationFailed.
func path(tenant, install, namespace string) (storage.DocumentPath, error) {
	p := storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace}
	if err := api.ValidateTenant(tenant); err != nil {
		return p, Failure(err)
	}
	if err := api.ValidateInstall(install); err != nil {
		return p, err
	}
	return p, api.ValidateDocumentNamespace(namespace)
}

// enter is path for an operation, which counts against the tenant's rate.
func (s *Service) enter(tenant, install, namespace string) (storage.DocumentPath, error) {
	p, err := path(tenant, install, namespace)
	if err == nil {
		err = s.rates.take(tenant)
	}
	return p, err
}

// Failure gives an error the code that the document storage has for it. Errors without a
// code are CodeStorageInternal, but for those of a context.
func Failure(err error) error {
	var coded *api.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case !errors.As(err, &coded):
		return api.Wrap(api.CodeStorageInternal, err, "an internal error")
	}
	code, known := codes[coded.Code]
	if !known {
		return err
	}
	if code == api.CodeStorageInternal {
		return api.Wrap(code, err, "an internal error")
	}
	own := *coded
	own.Code = code
	return &own
}

// codes are the storage's own for those of the platform.
var codes = map[api.Code]api.Code{
	api.CodeInternal:         api.CodeStorageInternal,
	api.CodeAuthzDenied:      api.CodeStorageDenied,
	api.CodeValidation:       api.CodeValidationFailed,
	api.CodeValidationName:   api.CodeValidationFailed,
	api.CodeValidationJSON:   api.CodeValidationFailed,
	api.CodeValidationCursor: api.CodeValidationFailed,
}

// moment is a time of the store's, nil for none.
func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

// document is a record as the API has it, without metadata and value.
func document(p storage.DocumentPath, d *Record) api.Document {
	return api.Document{
		Namespace: p.Namespace, Key: d.Key, Revision: d.Revision, TTLExpiresAt: moment(d.ExpiresAtMS),
		CreatedAt: time.UnixMilli(d.CreatedAtMS).UTC(), UpdatedAt: time.UnixMilli(d.UpdatedAtMS).UTC(),
	}
}
