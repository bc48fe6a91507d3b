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

// Config adjusts a Service. The zero value has no limits.
type Config struct {
	// Quota limits namespaces and tenants; a zero field is no limit. Every replica should
	// have the same one: each write is checked with that of its replica.
	Quota Quota
	// Rate is the largest number of operations of a tenant a second on this replica.
	// Default: no limit.
	Rate float64
	// Clock is the time by which documents expire. Default: time.Now.
	Clock func() time.Time
	// Metrics registers the metrics of the Service. Default: none.
	Metrics prometheus.Registerer
}

// Service implements the operations of the document store. Each validates its request, and
// fails with the codes of the document contract, CodeStoreUnavailable, or the error of
// ctx. An operation with valid names counts against the rate of its tenant, even if the rest of
// its request is invalid, and can fail with CodeRateLimited. The caller authorizes requests. A Service is
// safe for concurrent use.
type Service struct {
	store   *Repository
	quota   Quota
	clock   func() time.Time
	rates   rates
	cursors cursors
	schemas *schema.Cache
	// digests caches the digests of the schemas of namespaces that have one. An outdated
	// entry does no harm: the script of a write compares the digest with the stored one.
	digests *otter.Cache[storage.DocumentPath, string]
	metrics *serviceMetrics
}

// knownNamespaces is the number of schema digests that are cached.
const knownNamespaces = 10_000

// New returns a Service on store. It reads the key that authenticates cursors, and makes one
// if no replica has: it needs the store. ctx applies to New only; it is not retained.
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

// DefaultQuota returns the quota of a server without quota settings.
func DefaultQuota() Quota {
	return Quota{
		NamespaceRecords: api.DefaultNamespaceRecords, NamespaceBytes: api.DefaultNamespaceBytes,
		TenantRecords: api.DefaultTenantRecords, TenantBytes: api.DefaultTenantBytes,
	}
}

// now returns the time in milliseconds since 1970.
func (s *Service) now() int64 { return s.clock().UnixMilli() }

// path validates the names of a namespace. CodeDocumentInvalid with the offending field.
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

// enter validates the names of a namespace and counts an operation against the rate of the
// tenant.
func (s *Service) enter(tenant, install, namespace string) (storage.DocumentPath, error) {
	p, err := path(tenant, install, namespace)
	if err == nil {
		err = s.rates.take(tenant)
	}
	return p, err
}

// Failure converts the code of err to the code that the document contract has for it. An
// error without a code becomes CodeStorageInternal, except for an error of a context.
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

// codes maps codes of the platform to codes of the document contract.
var codes = map[api.Code]api.Code{
	api.CodeInternal:         api.CodeStorageInternal,
	api.CodeAuthzDenied:      api.CodeStorageDenied,
	api.CodeInvalid:          api.CodeDocumentInvalid,
	api.CodeValidationName:   api.CodeDocumentInvalid,
	api.CodeValidationJSON:   api.CodeDocumentInvalid,
	api.CodeValidationCursor: api.CodeDocumentInvalid,
	api.CodeTenantQuota:      api.CodeQuotaExceeded,
}

// moment converts milliseconds to a time; 0 is nil.
func moment(ms int64) *api.Moment {
	if ms == 0 {
		return nil
	}
	m := api.NewMoment(ms)
	return &m
}

// document converts a record to its form in the API, without metadata and value.
func document(p storage.DocumentPath, d *Record) api.Document {
	return api.Document{
		Namespace: p.Namespace, Key: d.Key, Revision: d.Revision, TTLExpiresAt: moment(d.ExpiresAtMS),
		CreatedAt: api.NewMoment(d.CreatedAtMS), UpdatedAt: api.NewMoment(d.UpdatedAtMS),
	}
}
