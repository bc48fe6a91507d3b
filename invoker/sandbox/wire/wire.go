// Package wire is the one protocol between a sandbox child and its parent: length-prefixed
// frames over an inherited stream socket. Neither side trusts the other's lengths: every
// read is bounded before it allocates.
//
// A frame is
//
//	u32 length of what follows | u8 kind | payload
//
// and all integers are big-endian. A payload is a JSON head, a blob, or both:
//
//	u32 length of head | head (JSON) | blob (the rest)
//
// so that results, bodies and bundles travel without being encoded twice. The frames of the
// hot path (Invoke, Done) carry fixed binary fields before those. payload.go has the layout
// of each kind.
//
// The host call cs.kv.get("a") with the id 1, and the reply that the value is 1:
//
//	00 00 00 1b                         27 bytes follow
//	07                                  KindHostCall
//	00 00 00 01                         id 1
//	06 6b 76 2e 67 65 74                6 bytes: kv.get
//	00 00 00 0b                         the head has 11 bytes
//	7b 22 6b 65 79 22 3a 22 61 22 7d    {"key":"a"}; no blob follows
//
//	00 00 00 19                         25 bytes follow
//	08                                  KindHostReply
//	00 00 00 01                         to call 1
//	01                                  it succeeded
//	00 00 00 0e                         the head has 14 bytes
//	7b 22 66 6f 75 6e 64 22 3a          {"found":
//	74 72 75 65 7d                      true}
//	31                                  the blob: 1
//
// The frames of a child's life, in order: Hello, Assign, Ready; then for each activation
// one Invoke, any number of Log, HostCall, Abandon, HostReply and Verdict, at most one Answer or
// streamed answer (Stream, any number of Chunk and Credit, StreamEnd), and one Done. Each
// HostCall has one reply, also if it was abandoned. A reply may come after the Done of its
// activation, when the child did not wait for it. Both sides close the socket to end.
//
// wire.go has the kinds and the reading of frames, payload.go the writing and the parsing
// of each kind, calls.go the declarations of host calls, socket.go the connection. Parent
// and child are always of the same build, so there is no version in the protocol.
package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds, in bytes. A reader holds a whole frame in memory, and a JSON head, once
// decoded, may take many times its text.
const (
	MaxFrame           = 24 << 20 // one frame: the largest bundle and the room around it
	MaxActivationFrame = 8 << 20  // what a child may send once it is ready: a result, logs, a host call
	MaxHead            = 1 << 20  // the head of a message or a host call
)

// Kind is the type of a frame.
type Kind uint8

// The kinds. The child speaks first (Hello); the parent then assigns a program,
// once; then activations follow one another.
const (
	KindHello     Kind = 1 // child → parent: head Hello; the child can be assigned
	KindAssign    Kind = 2 // parent → child: head Assign, blob bundle tar or script
	KindReady     Kind = 3 // child → parent: head Ready, blob the script if it was compiled here
	KindRefused   Kind = 4 // child → parent: head Refused; the source cannot be used
	KindInvoke    Kind = 5 // parent → child: Invoke
	KindDone      Kind = 6 // child → parent: Done
	KindHostCall  Kind = 7 // child → parent: HostCall
	KindHostReply Kind = 8 // parent → child: HostReply
	KindLog       Kind = 9 // child → parent: one or more log records

	KindAnswer Kind = 10 // child → parent: the handler's answer as a Done without figures, at most once

	// A streamed answer: stream.go.
	KindStream    Kind = 11 // child → parent: head StreamHead; an answer begins, at most once
	KindChunk     Kind = 12 // child → parent: bytes of its body
	KindStreamEnd Kind = 13 // child → parent: its body is complete
	KindCredit    Kind = 14 // parent → child: u32, bytes of the body that the child may send
	// KindAbort, child → parent: the script wants to know that the caller left; parent →
	// child: the caller left, and the child has a moment to end.
	KindAbort Kind = 15

	KindAbandon Kind = 16 // child → parent: u32, the id of a HostCall whose reply has no use any more
	KindVerdict Kind = 17 // child → parent: Verdict
)

// ErrFrame is returned for bytes that are not of this protocol.
var ErrFrame = errors.New("wire: malformed frame")

// The confinement layers that a child reports (see docs/sandbox.md).
const (
	LayerRlimits    = "rlimits"
	LayerLandlock   = "landlock"
	LayerNoNewPrivs = "no_new_privs"
	LayerSeccomp    = "seccomp"
)

// Hello reports the confinement layers that hold in the child. The child sends it once,
// before it has read anything.
type Hello struct {
	Layers []string `json:"layers"`
}

// Assign is the one program that a child serves. With Compiled the
// blob is the script that an earlier child made of the same bundle.
type Assign struct {
	Entry     string            `json:"entry"` // "" lets the child choose function.js or function.ts
	Handler   string            `json:"handler"`
	MemoryMB  int               `json:"memory_mb"`
	Env       map[string]string `json:"env,omitempty"`
	Tenant    string            `json:"tenant"`
	Namespace string            `json:"namespace"`
	Function  string            `json:"function"`
	Version   int64             `json:"version"`
	Compiled  bool              `json:"compiled,omitempty"`
	// CheckOnly compiles and answers Ready or Refused; the child then ends.
	CheckOnly bool `json:"check_only,omitempty"`
	// Instance lets one global scope serve many activations, within its bounds; nil makes
	// a fresh scope for each activation.
	Instance *Instance `json:"instance,omitempty"`
}

// Instance bounds the life of a global scope that serves many activations. After the
// first bound that is reached the child makes a new one.
type Instance struct {
	Activations int   `json:"activations"`
	AgeMS       int64 `json:"age_ms"`
}

// Ready reports that the child's limits are set and its program is compiled.
type Ready struct {
	LiveBytes   int64 `json:"live_bytes"`   // heap in use before the first activation
	MappedBytes int64 `json:"mapped_bytes"` // address space (VmSize) at that moment
}

// Refused reports why source text cannot be used: one Problem for each error in it.
type Refused struct {
	Problems []Problem `json:"problems"`
}

// Problem is one error in source text. Line and Column count from 1 and are 0 if unknown.
// File is the name in the bundle.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// InvokeHead describes an activation: the fields of the handler's ctx that Assign has not,
// and what cs.cadence.lastHeartbeat and cs.job need. Ref, Trigger, Principal and the fields
// below them are JSON, which the child parses only if the script reads it.
type InvokeHead struct {
	ActivationID string
	DeadlineMS   int64 // Unix milliseconds
	Attempt      int   // from 1
	RequestID    string
	Ref          []byte
	Trigger      []byte
	Principal    []byte
	// LastHeartbeat is empty for all but the later attempts of activities.
	LastHeartbeat []byte
	// Job is an api.RunningJob, and Checkpoint the last checkpoint of its attempts; empty
	// for none. Both are JSON.
	Job        []byte
	Checkpoint []byte
	// Flags are FlagEarly and others.
	Flags uint8
}

// Flags of an Invoke frame.
const (
	// FlagEarly: the parent takes an Answer before Done.
	FlagEarly uint8 = 1 << iota
	// FlagStream: the parent takes a streamed answer.
	FlagStream
	// FlagVerify: the modules are evaluated, and no handler is called. The value is a list of
	// the handlers, HandlerFunction or the methods of the object.
	FlagVerify
	// FlagBatch: the event is an api.MessageBatch for the handler queue.
	FlagBatch
)

// Outcome is how an activation ended in the child.
type Outcome uint8

// The outcomes. Undefined is a success without a value.
const (
	OutcomeValue     Outcome = 0
	OutcomeUndefined Outcome = 1
	OutcomeError     Outcome = 2 // error JSON: api.ActivationError
	OutcomeTimeout   Outcome = 3
)

// Flags of a Done frame.
const (
	// FlagLogsTruncated: the child dropped log lines over the limit.
	FlagLogsTruncated uint8 = 1 << iota
	// FlagRetire: the child must not be used again (memory limit, timeout).
	FlagRetire
)

// Done ends an activation. Body is the result's JSON for OutcomeValue, the error's JSON for
// OutcomeError, else empty. CPUNanos is the processor time of the child since its last Done
// or Ready, in nanoseconds; MemoryPeak is the most that the heap of the activation held, in
// bytes. Both are claims that the parent checks.
type Done struct {
	Outcome    Outcome
	Flags      uint8
	CPUNanos   uint64
	MemoryPeak uint64
	Body       []byte
}

const doneHeader = 1 + 1 + 8 + 8

// HostCall asks the parent for a side effect; Name is a row of the parent's table. ID is
// unique within an activation; the child never uses one twice, so that a late reply to an
// earlier activation cannot be taken for another.
type HostCall struct {
	ID   uint32
	Name string
	Head []byte // JSON arguments
	Blob []byte // e.g. a request body, or a value's JSON
}

// HostReply answers a HostCall: where OK is false, Head is a HostError.
type HostReply struct {
	ID   uint32
	OK   bool
	Head []byte
	Blob []byte
}

// HostError is the error of a host call, with which its promise is rejected. Members, if
// not empty, is a JSON object of further members of that error.
type HostError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Members json.RawMessage `json:"members,omitempty"`
}

// LogRecord is one line. Text is a plain string, or a JSON value where JSON is set.
type LogRecord struct {
	TSMS  int64 // Unix milliseconds
	Level uint8 // index into Levels
	JSON  bool
	Text  []byte
}

// Levels are the log levels by LogRecord.Level.
var Levels = [...]string{"debug", "info", "warn", "error"}

// Reader reads frames. It is not safe for concurrent use.
type Reader struct {
	r   *bufio.Reader
	max uint32
}

// NewReader reads frames from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), max: MaxFrame}
}

// Bound refuses frames of more than limit bytes from now on.
func (r *Reader) Bound(limit uint32) { r.max = limit }

// Next reads one frame; the payload is the caller's to keep. At the peer's end it returns
// io.EOF, in the middle of a frame io.ErrUnexpectedEOF, for a length out of bounds
// ErrFrame. After an error the stream cannot be read any further.
func (r *Reader) Next() (Kind, []byte, error) {
	head, err := r.r.Peek(5)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n < 1 || n > r.max {
		return 0, nil, fmt.Errorf("%w: length %d", ErrFrame, n)
	}
	kind := Kind(head[4])
	if _, err := r.r.Discard(5); err != nil {
		return 0, nil, err
	}
	payload, err := readFull(r.r, int(n)-1)
	return kind, payload, err
}

// Buffered returns the number of bytes that were read and not yet returned by Next.
func (r *Reader) Buffered() int { return r.r.Buffered() }

// readFull reads n bytes, growing as they arrive: a peer that announces much and
// sends little costs little.
func readFull(r *bufio.Reader, n int) ([]byte, error) {
	const step = 1 << 20
	buf := make([]byte, min(n, step))
	for read := 0; ; {
		m, err := io.ReadFull(r, buf[read:])
		read += m
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		if read == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 2*len(buf)))
		copy(grown, buf)
		buf = grown
	}
}

// begin starts a frame in dst, and returns the offset of its length, which end fills in.
func begin(dst []byte, kind Kind) ([]byte, int) {
	at := len(dst)
	return append(dst, 0, 0, 0, 0, byte(kind)), at
}

// end fills the frame's length in. A frame over MaxFrame is an error, and is removed from
// dst: the frames before it stay usable.
func end(dst []byte, at int) ([]byte, error) {
	n := len(dst) - at - 4
	if n > MaxFrame {
		return dst[:at], fmt.Errorf("%w: %d bytes exceed the frame limit of %d", ErrFrame, n, MaxFrame)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(n))
	return dst, nil
}
