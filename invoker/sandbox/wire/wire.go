// Package wire is the one protocol between a sandbox child and its parent:
// length-prefixed frames over an inherited stream socket. Neither side trusts
// the other's lengths: every read is bounded before it allocates.
//
// A frame is
//
//	u32 length of what follows | u8 kind | payload
//
// and all integers are big-endian. A payload is a JSON head, a blob, or both:
//
//	u32 length of head | head (JSON) | blob (the rest)
//
// so that results, bodies and bundles travel without being encoded twice. The
// frames of the hot path (Invoke, Done) carry fixed binary fields before those.
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

// Kind says what a frame is.
type Kind uint8

// The kinds. The child speaks first (Hello); the parent then assigns a program,
// once; then activations follow one another.
const (
	KindHello     Kind = 1  // child → parent: head Hello; the child can be assigned
	KindAssign    Kind = 2  // parent → child: head Assign, blob bundle tar or script
	KindReady     Kind = 3  // child → parent: head Ready, blob the script if it was compiled here
	KindRefused   Kind = 4  // child → parent: head Refused; the source cannot be used
	KindInvoke    Kind = 5  // parent → child: Invoke
	KindDone      Kind = 6  // child → parent: Done
	KindHostCall  Kind = 7  // child → parent: HostCall
	KindHostReply Kind = 8  // parent → child: HostReply
	KindLog       Kind = 9  // child → parent: one or more log records
	KindCancel    Kind = 10 // parent → child: interrupt the activation in hand; empty
)

// ErrFrame is answered for bytes that are not of this protocol.
var ErrFrame = errors.New("wire: malformed frame")

// The confinement layers that a child reports (see docs/sandbox.md).
const (
	LayerRlimits    = "rlimits"
	LayerLandlock   = "landlock"
	LayerNoNewPrivs = "no_new_privs"
	LayerSeccomp    = "seccomp"
)

// Hello tells which confinement layers hold in the child.
type Hello struct {
	Layers []string `json:"layers"`
}

// Assign gives a child the one program that it will serve. With Compiled the
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
}

// Ready says that the child's limits are set and its program compiled.
type Ready struct {
	LiveBytes   int64 `json:"live_bytes"`   // heap in use before the first activation
	MappedBytes int64 `json:"mapped_bytes"` // address space (VmSize) at that moment
}

// Refused says why source text cannot be used, one Problem for each place.
type Refused struct {
	Problems []Problem `json:"problems"`
}

// Problem is one place in source text. Line and Column count from 1; 0 where unknown.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// InvokeHead is what the handler's ctx shows, beside what Assign said. Ref,
// Trigger and Principal are JSON.
type InvokeHead struct {
	ActivationID string
	DeadlineMS   int64
	Attempt      int
	RequestID    string
	Ref          []byte
	Trigger      []byte
	Principal    []byte
}

// Outcome is how an activation ended in the child.
type Outcome uint8

// The outcomes. Undefined is a success without a value.
const (
	OutcomeValue     Outcome = 0
	OutcomeUndefined Outcome = 1
	OutcomeError     Outcome = 2 // error JSON: api.ActivationError
	OutcomeTimeout   Outcome = 3
	OutcomeCancelled Outcome = 4
)

// Flags of a Done frame.
const (
	// FlagLogsTruncated: the child dropped log lines over the limit.
	FlagLogsTruncated uint8 = 1 << iota
	// FlagRetire: the child must not be used again (memory limit, timeout).
	FlagRetire
)

// Done ends an activation. Body is the result's JSON for OutcomeValue, the
// error's JSON for OutcomeError, else empty.
type Done struct {
	Outcome    Outcome
	Flags      uint8
	CPUNanos   uint64
	MemoryPeak uint64
	Body       []byte
}

const doneHeader = 1 + 1 + 8 + 8

// HostCall asks the parent for a side effect; Name is a row of the parent's
// table. ID is unique within an activation.
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

// HostError is what a host call rejects with.
type HostError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// LogRecord is one line. Text is a plain string, or a JSON value where JSON is set.
type LogRecord struct {
	TSMS  int64
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

// Bound refuses frames of more than max bytes from now on.
func (r *Reader) Bound(max uint32) { r.max = max }

// Next reads one frame; the payload is the caller's to keep. At the peer's end
// it gives io.EOF; a frame that is cut short gives io.ErrUnexpectedEOF.
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

// Buffered is how many bytes of frames to come were read already.
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

// begin starts a frame in dst and gives the place of its length.
func begin(dst []byte, kind Kind) ([]byte, int) {
	at := len(dst)
	return append(dst, 0, 0, 0, 0, byte(kind)), at
}

// end fills the frame's length in.
func end(dst []byte, at int) ([]byte, error) {
	n := len(dst) - at - 4
	if n > MaxFrame {
		return dst[:at], fmt.Errorf("%w: %d bytes exceed the frame limit of %d", ErrFrame, n, MaxFrame)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(n))
	return dst, nil
}

// AppendMessage appends a frame of a JSON head and a blob (Hello, Assign, Ready,
// Refused). A nil head leaves the payload empty (Cancel).
func AppendMessage(dst []byte, kind Kind, head any, blob []byte) ([]byte, error) {
	dst, at := begin(dst, kind)
	if head != nil {
		j, err := json.Marshal(head)
		if err != nil {
			return dst[:at], err
		}
		if len(j) > MaxHead {
			return dst[:at], errHead
		}
		dst = appendSized(dst, j)
		dst = append(dst, blob...)
	}
	return end(dst, at)
}

// ParseMessage reads the payload of a frame that AppendMessage made, in place.
func ParseMessage(payload []byte, head any) (blob []byte, err error) {
	j, blob, err := cutHead(payload)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(j, head); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrFrame, err)
	}
	return blob, nil
}

// AppendInvoke appends an Invoke frame. Its head is binary: there is one for
// every activation, and most handlers look at none of it.
func AppendInvoke(dst []byte, h *InvokeHead, event []byte) ([]byte, error) {
	dst, at := begin(dst, KindInvoke)
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.DeadlineMS))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Attempt))
	dst = appendSized(dst, h.ActivationID)
	dst = appendSized(dst, h.RequestID)
	dst = appendSized(dst, h.Ref)
	dst = appendSized(dst, h.Trigger)
	dst = appendSized(dst, h.Principal)
	dst = append(dst, event...)
	return end(dst, at)
}

const invokeHeader = 8 + 4

// ParseInvoke reads an Invoke payload, in place.
func ParseInvoke(payload []byte) (h InvokeHead, event []byte, err error) {
	if len(payload) < invokeHeader {
		return h, nil, ErrFrame
	}
	h.DeadlineMS = int64(binary.BigEndian.Uint64(payload))
	h.Attempt = int(binary.BigEndian.Uint32(payload[8:]))
	rest := payload[invokeHeader:]
	var id, request []byte
	for _, field := range []*[]byte{&id, &request, &h.Ref, &h.Trigger, &h.Principal} {
		if *field, rest, err = cutSized(rest); err != nil {
			return h, nil, err
		}
	}
	h.ActivationID, h.RequestID = string(id), string(request)
	return h, rest, nil
}

// AppendDone appends a Done frame.
func AppendDone(dst []byte, d Done) ([]byte, error) {
	dst, at := begin(dst, KindDone)
	dst = append(dst, byte(d.Outcome), d.Flags)
	dst = binary.BigEndian.AppendUint64(dst, d.CPUNanos)
	dst = binary.BigEndian.AppendUint64(dst, d.MemoryPeak)
	dst = append(dst, d.Body...)
	return end(dst, at)
}

// ParseDone reads a Done payload, in place.
func ParseDone(payload []byte) (Done, error) {
	if len(payload) < doneHeader || payload[0] > byte(OutcomeCancelled) {
		return Done{}, ErrFrame
	}
	return Done{
		Outcome:    Outcome(payload[0]),
		Flags:      payload[1],
		CPUNanos:   binary.BigEndian.Uint64(payload[2:]),
		MemoryPeak: binary.BigEndian.Uint64(payload[10:]),
		Body:       payload[doneHeader:],
	}, nil
}

// AppendHostCall appends a HostCall frame.
func AppendHostCall(dst []byte, c HostCall) ([]byte, error) {
	if len(c.Name) > 255 {
		return dst, ErrFrame
	}
	if len(c.Head) > MaxHead {
		return dst, errHead
	}
	dst, at := begin(dst, KindHostCall)
	dst = binary.BigEndian.AppendUint32(dst, c.ID)
	dst = append(dst, byte(len(c.Name)))
	dst = append(dst, c.Name...)
	dst = appendSized(dst, c.Head)
	dst = append(dst, c.Blob...)
	return end(dst, at)
}

// ParseHostCall reads a HostCall payload, in place.
func ParseHostCall(payload []byte) (HostCall, error) {
	if len(payload) < 5 || len(payload) < 5+int(payload[4]) {
		return HostCall{}, ErrFrame
	}
	c := HostCall{ID: binary.BigEndian.Uint32(payload)}
	rest := payload[5:]
	c.Name, rest = string(rest[:payload[4]]), rest[payload[4]:]
	var err error
	c.Head, c.Blob, err = cutHead(rest)
	return c, err
}

// AppendHostReply appends a HostReply frame.
func AppendHostReply(dst []byte, r HostReply) ([]byte, error) {
	dst, at := begin(dst, KindHostReply)
	dst = binary.BigEndian.AppendUint32(dst, r.ID)
	ok := byte(0)
	if r.OK {
		ok = 1
	}
	dst = append(dst, ok)
	dst = appendSized(dst, r.Head)
	dst = append(dst, r.Blob...)
	return end(dst, at)
}

// ParseHostReply reads a HostReply payload, in place.
func ParseHostReply(payload []byte) (HostReply, error) {
	if len(payload) < 5 || payload[4] > 1 {
		return HostReply{}, ErrFrame
	}
	r := HostReply{ID: binary.BigEndian.Uint32(payload), OK: payload[4] == 1}
	var err error
	r.Head, r.Blob, err = cutSized(payload[5:])
	return r, err
}

const logHeader = 8 + 1 + 1 + 4

// LogRecordOverhead is charged for each record beside its text, so that empty
// lines are bounded too.
const LogRecordOverhead = 32

// BeginLog starts a Log frame in dst; AppendLogRecord adds to it and EndLog
// closes it.
func BeginLog(dst []byte) ([]byte, int) { return begin(dst, KindLog) }

// AppendLogRecord adds one record to an open Log frame.
func AppendLogRecord(dst []byte, l LogRecord) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(l.TSMS))
	isJSON := byte(0)
	if l.JSON {
		isJSON = 1
	}
	dst = append(dst, l.Level, isJSON)
	return appendSized(dst, l.Text)
}

// EndLog closes the Log frame that BeginLog started at the given place.
func EndLog(dst []byte, at int) ([]byte, error) { return end(dst, at) }

// ParseLog calls each for every record of a Log payload, in order and in place.
func ParseLog(payload []byte, each func(LogRecord)) error {
	for len(payload) > 0 {
		if len(payload) < logHeader || int(payload[8]) >= len(Levels) || payload[9] > 1 {
			return ErrFrame
		}
		l := LogRecord{
			TSMS:  int64(binary.BigEndian.Uint64(payload)),
			Level: payload[8],
			JSON:  payload[9] == 1,
		}
		var err error
		n := binary.BigEndian.Uint32(payload[10:])
		if l.Text, payload, err = cut(payload[logHeader:], n); err != nil {
			return err
		}
		each(l)
	}
	return nil
}

func appendSized[T string | []byte](dst []byte, b T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// cutSized splits a sized head from what follows it.
func cutSized(b []byte) (head, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, ErrFrame
	}
	return cut(b[4:], binary.BigEndian.Uint32(b))
}

var errHead = fmt.Errorf("%w: a head of more than %d bytes", ErrFrame, MaxHead)

// cutHead is cutSized for a head that will be decoded.
func cutHead(b []byte) (head, rest []byte, err error) {
	if head, rest, err = cutSized(b); err == nil && len(head) > MaxHead {
		err = errHead
	}
	return head, rest, err
}

func cut(b []byte, n uint32) (head, rest []byte, err error) {
	if uint64(n) > uint64(len(b)) {
		return nil, nil, ErrFrame
	}
	return b[:n], b[n:], nil
}
