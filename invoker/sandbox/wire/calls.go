package wire

import "encoding/json"

// Call is the declaration of one host call: its name on the wire, the type of its
// arguments and the type of its reply. The child sends it and the parent serves it by
// the same declaration, so that neither side can have a name, a field or a limit that
// the other has not.
//
//	child:   send(r, wire.KVGet, wire.KVKey{Key: "a"}, nil,
//	             func(found wire.KVFound, value []byte) goja.Value { … })
//	parent:  wire.KVGet.Name: handle(wire.KVGet, kv.permitGet, kv.get)
//
// Args and Reply travel as the JSON head of a HostCall and its HostReply. A value of
// any size (a body, an event, a document) travels beside it, as the blob.
type Call[Args, Reply any] struct {
	Name string
}

// None is the arguments or the reply of a call that has none: {} on the wire.
type None struct{}

// MaxCallBlob bounds the blob of a host call, in bytes, so that it fits a frame beside
// its head (MaxActivationFrame).
const MaxCallBlob = 6 << 20

// MaxCallsInFlight bounds the host calls of one activation that wait for a reply.
const MaxCallsInFlight = 1000

// The calls of cs.kv. The blob of KVSet and of the reply to KVGet is the value, as JSON.
var (
	KVGet = Call[KVKey, KVFound]{"kv.get"}
	KVSet = Call[KVEntry, None]{"kv.set"}
	KVDel = Call[KVKey, KVDeleted]{"kv.del"}
)

// Limits of cs.kv.
const (
	MaxKVKeyBytes   = 512
	MaxKVValueBytes = 64 << 10
	MaxKVTTLSeconds = 315_360_000 // ten years
)

// KVTTLRange is the error text for a TTL above MaxKVTTLSeconds.
const KVTTLRange = "ttlSeconds is 1 to 315360000"

// KVKey names an entry.
type KVKey struct {
	Key string `json:"key"`
}

// KVEntry is an entry to be set. TTLSeconds is 1 to MaxKVTTLSeconds; 0 keeps the entry
// until it is deleted.
type KVEntry struct {
	Key        string `json:"key"`
	TTLSeconds int64  `json:"ttl_seconds,omitempty"`
}

// KVFound reports whether the entry exists.
type KVFound struct {
	Found bool `json:"found"`
}

// KVDeleted reports whether there was an entry to delete.
type KVDeleted struct {
	Deleted bool `json:"deleted"`
}

// InvokeFunction runs another function. Its blob is the event, the reply's blob the result.
var InvokeFunction = Call[InvokeTarget, InvokeReply]{"invoke"}

// InvokeTarget names the function: name, or namespace/name. Without an alias and a
// version the default alias is meant.
type InvokeTarget struct {
	Function string `json:"function"`
	Alias    string `json:"alias,omitempty"`
	Version  int64  `json:"version,omitempty"`
}

// InvokeReply reports whether the result is a value; otherwise it is undefined.
type InvokeReply struct {
	HasValue bool `json:"has_value"`
}

// SecretGet reads a secret. The reply's blob is its value.
var SecretGet = Call[SecretName, None]{"secrets.get"}

// SecretName names a secret of the function's namespace.
type SecretName struct {
	Name string `json:"name"`
}

// EnqueueJob adds a job to a queue. Its blob is the payload, as JSON.
var EnqueueJob = Call[EnqueueTarget, EnqueueReply]{"queue.enqueue"}

// EnqueueTarget names the queue. Options is the script's object, which the host reads.
type EnqueueTarget struct {
	Queue   string          `json:"queue"`
	Options json.RawMessage `json:"options"`
}

// EnqueueReply is the job. Duplicate reports that it existed before the call.
type EnqueueReply struct {
	ID        string `json:"id"`
	State     string `json:"state"`
	Duplicate bool   `json:"duplicate"`
}

// The calls of cs.job. The blob of JobCheckpoint is the checkpoint, as JSON.
var (
	JobProgress   = Call[Progress, None]{"job.progress"}
	JobCheckpoint = Call[Checkpoint, None]{"job.checkpoint"}
)

// MaxProgressCount bounds Current and Total of a Progress. Every JSON reader holds
// whole numbers up to it exactly.
const MaxProgressCount = 1 << 53

// Progress is how far a job has come. Order numbers the updates of one activation from
// 1: the host serves calls concurrently, and keeps the update that was sent last.
type Progress struct {
	Order   int64   `json:"order"`
	Current float64 `json:"current"`
	Total   float64 `json:"total,omitempty"`
	Message string  `json:"message,omitempty"`
}

// Checkpoint is the head of a checkpoint. Order is that of Progress.
type Checkpoint struct {
	Order int64 `json:"order"`
}

// The calls of cs.cadence. The blobs are the details of a heartbeat and the input of a
// workflow or a signal, as JSON; empty for none.
var (
	CadenceHeartbeat = Call[None, None]{"cadence.heartbeat"}
	CadenceStart     = Call[Workflow, WorkflowRun]{"cadence.start"}
	CadenceSignal    = Call[Workflow, None]{"cadence.signal"}
)

// Workflow describes a workflow to start or to signal. Workflow is its type.
type Workflow struct {
	Workflow                string  `json:"workflow"`
	Domain                  string  `json:"domain"`
	Tasklist                string  `json:"tasklist,omitempty"`
	WorkflowID              string  `json:"workflow_id,omitempty"`
	RunID                   string  `json:"run_id,omitempty"`
	Signal                  string  `json:"signal,omitempty"`
	ExecutionTimeoutSeconds float64 `json:"execution_timeout_seconds,omitempty"`
	DecisionTimeoutSeconds  float64 `json:"decision_timeout_seconds,omitempty"`
	IDReuse                 string  `json:"id_reuse,omitempty"`
}

// WorkflowRun names a run of a workflow.
type WorkflowRun struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// DocumentCall is the declaration of an operation of the document storage. Its request
// is the blob, an api.Document… as JSON, because the bytes of its values are counted as
// the script wrote them. Op is the name that a manifest grants.
type DocumentCall struct {
	Op string
}

// Name returns the name of the call on the wire.
func (c DocumentCall) Name() string { return "storage." + c.Op }

// The calls of cs.storage. DocumentGet replies with the document as the head and its
// value as the blob; DocumentList replies with the page as the blob, the others with
// their result as the head.
var (
	DocumentPut      = DocumentCall{"put"}
	DocumentGet      = DocumentCall{"get"}
	DocumentList     = DocumentCall{"list"}
	DocumentDelete   = DocumentCall{"delete"}
	DocumentBulkPut  = DocumentCall{"bulkPut"}
	DocumentTransact = DocumentCall{"transact"}
)
