package hostcall

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/step"
	"github.com/codesous/sous/invoker/models"
)

// Scope is the activation that makes host calls: whose it is, what its version may do, and
// what the engine does for it. The engine sets it before the activation runs and does not
// change it afterwards; nothing in it comes from the sandbox. A nil field turns off the
// calls that need it. It is used by many calls concurrently.
type Scope struct {
	// Tenant, Namespace and Function are the caller's. Calls use them as the prefix of
	// keys and queues: a script cannot name another tenant.
	Tenant, Namespace, Function string
	Capabilities                api.Capabilities
	// Record is awaited before every call: it stores the activation's record, so that
	// an effect never precedes it.
	Record Record
	// Heartbeat reports progress to Cadence; nil except for activities.
	Heartbeat func(details json.RawMessage) error
	// UpdateJob takes progress and checkpoints; nil except for attempts of jobs. order
	// numbers the updates of the activation as the function made them, from 1.
	UpdateJob func(order int64, u JobUpdate)
	// Run is the activation of a run, whose steps are durable; nil except for attempts of jobs.
	Run *step.Activation
	// Nested are the calls of cs.invoke; nil where nothing can be called.
	Nested *NestedCalls
	// Secrets reads the secrets that the version names; nil if it names none.
	Secrets Secrets

	// Models is the activation as a caller of models; nil where none can be called. The calls set
	// the fields that concern one call.
	Models *models.Caller

	traffic     trafficBytes
	modelSlots  modelSlots
	install     installGrant
	connections connections
}

// Record is the activation's record in the store: the engine's visibility. A nil Record is
// that of an activation whose record is known to be stored.
type Record interface {
	// Ensure returns nil once the record is stored.
	Ensure(ctx context.Context) error
}

// Secrets are the secrets of one activation.
type Secrets interface {
	// Get returns a secret's current value. Errors: CodeHostSecretNotFound,
	// CodeHostSecretUnavailable, the store's.
	Get(ctx context.Context, name string) ([]byte, error)
}

// installGrant remembers that the activation may use the install that its manifest
// names, so that the document storage is asked once.
type installGrant struct {
	mu      sync.Mutex
	granted bool
}
