package api

import (
	"encoding/json"
	"slices"
	"strings"
)

// Version is an immutable published bundle. Config merges the manifest with the
// configuration in the publish request. Versions of a function are numbered from 1 without
// gaps. SHA256 and SizeBytes are those of the canonical tar.
type Version struct {
	Version   int64         `json:"version"`
	SHA256    string        `json:"sha256"`
	SizeBytes int64         `json:"size_bytes,omitempty"`
	Config    VersionConfig `json:"config"`
	// Handlers are what the version exports, as its verification found: HandlerFunction, or the
	// methods of an object, in order. It is nil if the version was not verified.
	Handlers      []string `json:"handlers,omitempty"`
	PublishedAtMS int64    `json:"published_at_ms"`
}

// The handlers of a version.
const (
	HandlerFunction  = "function" // no object: a function for all events
	HandlerFetch     = "fetch"
	HandlerScheduled = "scheduled"
	HandlerQueue     = "queue"
)

// Handles returns CodeInvalid if the verification found that the version has no handler for
// synchronous invocations by trigger, which is a Trigger… constant. A function handles all of
// them; the jobs of a queue trigger need the method queue, ticks of a schedule the method
// scheduled, and all others the method fetch.
func (v *Version) Handles(trigger string) error {
	need := HandlerFetch
	switch trigger {
	case TriggerQueue:
		need = HandlerQueue
	case TriggerSchedule:
		need = HandlerScheduled
	}
	if v.Handlers == nil || slices.Contains(v.Handlers, HandlerFunction) || slices.Contains(v.Handlers, need) {
		return nil
	}
	return Errorf(CodeInvalid, "version %d exports an object with %s, but no method %s, which the trigger %s calls",
		v.Version, strings.Join(v.Handlers, " and "), need, trigger)
}

// VersionConfig configures how a version runs. It is stored with all defaults set.
type VersionConfig struct {
	Entry          string `json:"entry"`
	Handler        string `json:"handler"`
	TimeoutMS      int64  `json:"timeout_ms"`
	CPUMS          int64  `json:"cpu_ms,omitempty"` // 0 for versions published before the field existed
	MemoryMB       int    `json:"memory_mb"`
	MaxConcurrency int    `json:"max_concurrency"`
	// Isolation is IsolationActivation or IsolationInstance. Versions published before
	// the field existed have "", which means IsolationActivation.
	Isolation    Isolation         `json:"isolation,omitempty"`
	Env          map[string]string `json:"env,omitempty"`
	Capabilities Capabilities      `json:"capabilities"`
	Authz        *Authz            `json:"authz,omitempty"`
	CORS         *CORS             `json:"cors,omitempty"`
	// For asynchronous invocations; nil and zero mean the defaults of jobs.
	Retry         *Retry       `json:"retry,omitempty"`
	MaxEventAgeMS int64        `json:"max_event_age_ms,omitempty"`
	OnSuccess     *Destination `json:"on_success,omitempty"`
	OnFailure     *Destination `json:"on_failure,omitempty"`
	// Description says what the version does, for models that may call it. A version with an
	// InputSchema, a JSON Schema of an object, is a tool at /v1/mcp; OutputSchema is that of its result.
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// Record is nil for a version of which every activation is recorded and kept as long as the
	// tenant's others.
	Record *Recording `json:"record,omitempty"`
}

// Isolation is the extent to which activations of a version share a global scope.
type Isolation string

const (
	// IsolationInstance evaluates the version's modules once in each sandbox and serves
	// many activations with them, one at a time: the state of the modules persists from
	// one activation to the next, also of different callers. It is the default.
	IsolationInstance Isolation = "instance"
	// IsolationActivation evaluates the modules in a fresh global scope for each activation.
	IsolationActivation Isolation = "activation"
)

// Retry configures how often and after which delays a failed asynchronous invocation
// runs again.
type Retry struct {
	MaxAttempts int     `json:"max_attempts,omitempty"`
	Backoff     Backoff `json:"backoff,omitempty"`
	BaseDelayMS *int64  `json:"base_delay_ms,omitempty"`
	MaxDelayMS  int64   `json:"max_delay_ms,omitempty"`
	Jitter      bool    `json:"jitter,omitempty"`
}

// Destination receives the outcome of an asynchronous invocation: a queue or a function
// of the same namespace, the function by alias or version (default: DefaultAlias).
type Destination struct {
	Queue    string `json:"queue,omitempty"`
	Function string `json:"function,omitempty"`
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
}

// DefaultAlias is the alias of a target that names only a function, and the default of
// the command line.
const DefaultAlias = "prod"

// JobOptions returns the options of the job of an asynchronous invocation that is
// accepted at nowMS.
func (c *VersionConfig) JobOptions(nowMS int64, target JobTarget) JobOptions {
	o := JobOptions{Target: &target}
	if r := c.Retry; r != nil {
		o.MaxAttempts, o.Backoff, o.BaseDelayMS, o.MaxDelayMS, o.Jitter = r.MaxAttempts, r.Backoff, r.BaseDelayMS, r.MaxDelayMS, r.Jitter
	}
	if c.MaxEventAgeMS > 0 {
		o.ExpireAtMS = nowMS + c.MaxEventAgeMS
	}
	return o
}

// Defaults and bounds of a version's limits; docs/functions.md and GET /v1/limits
// print them from here.
const (
	DefaultTimeoutMS      = 3000
	MaxTimeoutMS          = 900_000
	MaxWebTimeoutMS       = 30_000
	DefaultCPUMS          = 10_000
	MinCPUMS              = 10
	MaxCPUMS              = 900_000
	DefaultMemoryMB       = 128
	MinMemoryMB           = 16
	MaxMemoryMB           = 4096
	DefaultMaxConcurrency = 10
	MaxMaxConcurrency     = 1000
	MaxEnvEntries         = 128
	MaxEnvBytes           = 32 << 10
	MaxToolSchemaBytes    = 32 << 10 // of an InputSchema or OutputSchema
)

// Capabilities lists the resources outside the sandbox that a version may use. A nil
// member grants nothing.
type Capabilities struct {
	KV      *KVCapability      `json:"kv,omitempty"`
	Storage *StorageCapability `json:"storage,omitempty"`
	Queue   *QueueCapability   `json:"queue,omitempty"`
	Invoke  *InvokeCapability  `json:"invoke,omitempty"`
	Cadence *CadenceCapability `json:"cadence,omitempty"`
	HTTP    *HTTPCapability    `json:"http,omitempty"`
	AI      *AICapability      `json:"ai,omitempty"`
	Secrets []string           `json:"secrets,omitempty"`
}

// KVCapability grants operations (get, set, del) on the keys that begin with one of Prefixes.
type KVCapability struct {
	Prefixes []string `json:"prefixes"`
	Ops      []string `json:"ops"`
}

// StorageCapability grants operations on namespaces of documents. Install owns the
// documents: "" is the function's own install, any other must be registered for the
// function.
type StorageCapability struct {
	Install    string   `json:"install,omitempty"`
	Namespaces []string `json:"namespaces"`
	Ops        []string `json:"ops"`
}

// QueueCapability grants enqueuing to the queues.
type QueueCapability struct {
	Publish []string `json:"publish"`
}

// InvokeCapability grants calls of functions of the same tenant.
type InvokeCapability struct {
	Functions []string `json:"functions"`
}

// CadenceCapability grants starting and signalling the workflow types in the domains.
type CadenceCapability struct {
	Domains   []string `json:"domains"`
	Workflows []string `json:"workflows"`
}

// HTTPCapability grants fetch requests to the hosts ("api.example.com",
// "*.example.com", "*", each with an optional ":port") and bounds the duration of each
// (0: the invocation's deadline).
type HTTPCapability struct {
	AllowHosts []string `json:"allowHosts"`
	TimeoutMS  int64    `json:"timeoutMs,omitempty"`
}

// AICapability grants calls of models of the providers, and routes, of the names; "*" names all. It bounds
// the output tokens of each call (0: not at all) and its duration (0: the invocation's deadline).
type AICapability struct {
	Providers []string `json:"providers"`
	MaxTokens int64    `json:"maxTokens,omitempty"`
	TimeoutMS int64    `json:"timeoutMs,omitempty"`
}

// Authz restricts who may invoke a version, by trigger. An empty list admits every caller
// with the right to invoke. ["*"] under HTTP makes the version public: it then needs no API
// key. Lists are about roles of API keys, the tenant's own ("role:billing") included.
type Authz struct {
	InvokeHTTPRoles     []string `json:"invoke_http_roles,omitempty"`
	InvokeScheduleRoles []string `json:"invoke_schedule_roles,omitempty"`
	InvokeCadenceRoles  []string `json:"invoke_cadence_roles,omitempty"`
}

// CORS configures the responses of the web endpoint to other origins; nil adds no headers.
type CORS struct {
	AllowOrigins     []string `json:"allow_origins"`
	AllowMethods     []string `json:"allow_methods,omitempty"`
	AllowHeaders     []string `json:"allow_headers,omitempty"`
	ExposeHeaders    []string `json:"expose_headers,omitempty"`
	AllowCredentials bool     `json:"allow_credentials,omitempty"`
	MaxAgeSeconds    int      `json:"max_age_seconds,omitempty"`
}

// Limits of bundles and requests, in bytes.
const (
	MaxBundleBytes    = 16 << 20
	MaxBundleFiles    = 1000
	MaxBundlePath     = 256
	MaxDraftJSONBytes = 24 << 20
	MaxEventBytes     = 6 << 20
	MaxRequestBytes   = 1 << 20
	MaxHeaderBytes    = 64 << 10
	MaxQueryBytes     = 16 << 10
)
