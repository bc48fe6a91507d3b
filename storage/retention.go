package storage

import (
	"time"

	"github.com/codesous/sous/api"
)

// Retention is how long ended records of one kind are kept. All processes of a store should
// have the same: each applies its own. A Default of 0 means the default of the kind (see Or).
type Retention struct {
	// Default applies to tenants without a value of their own.
	Default time.Duration
	// Tenants has the values of single tenants, by their ids.
	Tenants map[string]time.Duration
}

// MS returns the retention of a tenant in milliseconds. own is the value of the function's
// version or of the queue, which precedes that of the tenant; 0 for none.
func (r Retention) MS(tenant string, own int64) int64 {
	if own > 0 {
		return own
	}
	if keep, ok := r.Tenants[tenant]; ok {
		return keep.Milliseconds()
	}
	return r.Default.Milliseconds()
}

// Or returns r with the default ms, in milliseconds, if r has none.
func (r Retention) Or(ms int64) Retention {
	if r.Default <= 0 {
		r.Default = time.Duration(ms) * time.Millisecond
	}
	return r
}

// ActivationRetentionMS returns how long ended activations of a tenant are kept, in
// milliseconds. own is the retention of the function's version, 0 for none.
func (s *Store) ActivationRetentionMS(tenant string, own int64) int64 {
	return s.activations.Or(api.ActivationTTLMS).MS(tenant, own)
}

// AuditRetentionMS returns how long events of a tenant's audit are kept, in milliseconds.
func (s *Store) AuditRetentionMS(tenant string) int64 {
	return s.audit.Or(api.AuditTTLMS).MS(tenant, 0)
}
