// Package hostcall performs the side effects that sandboxed functions ask for: cs.kv,
// cs.storage, cs.queue, cs.invoke, cs.job, cs.step, cs.cadence, cs.secrets, cs.ai and fetch.
//
// A Table holds one entry for each call that sandbox/wire declares. Every call takes the
// same way through Table.Call: its arguments are decoded, the version's capabilities are
// checked, the activation's record is stored, and only then the call runs. Each file adds
// the calls of one namespace by a method calls.
//
// The way of await cs.kv.get("a"), from the script to the store and back:
//
//	child/global_kv.go   kvGet checks the key and sends
//	child/hostcall.go    realm.call writes a HostCall frame and keeps the promise under its id
//	                     ---- socket ----
//	sandbox/run.go       run.handle reads the frame
//	sandbox/hostcalls.go start waits for room, and continues in a goroutine of the call
//	invoker/invoke.go    Call.Host adds the activation's Scope, and a span
//	hostcall/table.go    Table.Call decodes {"key":"a"}, asks permitGet, awaits the record
//	hostcall/kv.go       get checks the limits and reads the store
//	sandbox/hostcalls.go answer writes a HostReply frame {"found":true}, value 1
//	                     ---- socket ----
//	child/loop.go        turn receives the frame
//	child/hostcall.go    replied settles the promise; its reactions run
//
// "Add a host call" in CONTRIBUTING.md lists the files of a new call, on both sides.
//
// A function that a version did not declare a capability for must never reach run: permit
// decides by the scope, which the parent sets, and by the arguments, which the sandbox may
// forge. run checks every limit again, whatever the child has checked.
package hostcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonsize"
	"github.com/codesous/sous/invoker/sandbox"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// Services are what the calls work with. The calls of a nil service fail when they are
// made, except those that need none; New never fails.
type Services struct {
	KV KV
	// EgressAllow are address ranges that fetch may reach although they are not public.
	EgressAllow []netip.Prefix
	// Resolver answers fetch's DNS questions; nil stands for the host's.
	Resolver *net.Resolver
	// Egress receives the bytes that a tenant's functions send and receive by fetch, WebSocket
	// and cs.ai, as they flow, in parts of up to some hundred KB; nil receives none. It must
	// not block. Its error ends the exchange: the function sees the code and the message of an
	// api.Error.
	Egress    func(tenant string, bytes int64) error
	Engine    Engine
	Queue     Queue
	Workflows Workflows
	Documents Documents
	Steps     Steps
	Models    Models
	// AdmitEgress admits a request of a tenant's function to another server; nil admits all.
	AdmitEgress func(ctx context.Context, tenant string) error
	// NowMS is the store's clock, in Unix milliseconds; the Queue needs it.
	NowMS func() int64
}

// Table performs host calls. It is safe for concurrent use, and holds no state of an
// activation: that is in its Scope.
type Table struct {
	calls       map[string]call
	admitEgress func(ctx context.Context, tenant string) error
}

// New makes the table of all calls. It is made once for an engine and never changed.
func New(s Services) *Table {
	t := &Table{calls: map[string]call{}, admitEgress: s.AdmitEgress}
	fetch, sockets := newFetchCalls(s.EgressAllow, s.Resolver), newSocketCalls(s.EgressAllow, s.Resolver)
	asked := newModelCalls(s.Models, s.EgressAllow, s.Resolver)
	fetch.traffic, sockets.traffic, sockets.places = s.Egress, s.Egress, fetch.places
	asked.traffic, asked.places, asked.admit = s.Egress, fetch.places, s.AdmitEgress
	for _, calls := range []map[string]call{
		(&kvCalls{s.KV}).calls(),
		fetch.calls(),
		sockets.calls(),
		(&invokeCalls{s.Engine}).calls(),
		secretCalls{}.calls(),
		(&queueCalls{s.Queue, s.NowMS}).calls(),
		jobCalls{}.calls(),
		(&stepCalls{s.Steps, s.NowMS}).calls(),
		(&cadenceCalls{s.Workflows}).calls(),
		(&documentCalls{s.Documents}).calls(),
		asked.calls(),
	} {
		maps.Copy(t.calls, calls)
	}
	return t
}

// call is one side effect that a function can ask for.
type call struct {
	// decode reads the arguments; unknown ones are refused.
	decode func(head, blob []byte) (any, error)
	// permit returns "" if the version may do this, otherwise the capability that it
	// must declare.
	permit func(s *Scope, args any) (declare string)
	// run performs the call. head is encoded as JSON; reply is sent as it is.
	run func(ctx context.Context, s *Scope, args any, blob []byte) (head any, reply []byte, err error)
	// denied is the code of a refusal by permit. failure turns any error into the one
	// that the function sees.
	denied  api.Code
	failure func(error) error
}

// handle makes a call of a declaration and its two typed functions. permit may not block.
// run may be called concurrently for one activation; it ends when ctx does.
func handle[A, R any](
	_ wire.Call[A, R],
	permit func(*Scope, A) string,
	run func(context.Context, *Scope, A, []byte) (R, []byte, error),
) call {
	return call{
		decode: func(head, _ []byte) (any, error) {
			var args A
			if err := decodeStrict(head, &args); err != nil {
				return nil, api.Errorf(api.CodeHostInvalidArgument, "malformed arguments: %v", err)
			}
			return args, nil
		},
		permit: func(s *Scope, args any) string { return permit(s, args.(A)) },
		run: func(ctx context.Context, s *Scope, args any, blob []byte) (any, []byte, error) {
			return run(ctx, s, args.(A), blob)
		},
		denied: api.CodeRuntimeCapabilityDenied, failure: publicError,
	}
}

// free is the permit of a call that needs no capability.
func free[A any](*Scope, A) string { return "" }

// maxDecoded bounds the decoded form of the arguments of a call, in bytes: the server decodes them
// outside of the limits of the sandbox.
const maxDecoded = 1 << 20

// decodeStrict decodes one JSON object all of whose members are known.
func decodeStrict(raw []byte, into any) error {
	if !jsonsize.Fits(raw, reflect.TypeOf(into), maxDecoded) {
		return errors.New("more elements than a call may have")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text behind the object")
	}
	return nil
}

// Knows reports whether there is a call of that name.
func (t *Table) Knows(name string) bool {
	_, ok := t.calls[name]
	return ok
}

// Call performs the call name for s. The code and the message of an error are meant
// for the function: internal causes are named, not shown.
//
// The order of the steps matters: a call that is malformed or not allowed neither waits for
// the record nor writes one, and no effect precedes the record. Errors of the steps:
//
//	unknown name, malformed   CodeHostInvalidArgument
//	not declared              CodeRuntimeCapabilityDenied
//	record not stored         CodeStoreUnavailable, or CodeRuntimeTimeout if ctx ended
//	run                       those of the call; without a code CodeInternal
//
// The calls of cs.storage have codes of their own for the same cases (documentFailure).
func (t *Table) Call(ctx context.Context, s *Scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error) {
	c, ok := t.calls[name]
	if !ok {
		return nil, nil, api.Errorf(api.CodeHostInvalidArgument, "no host call is named %q", name)
	}
	args, err := c.decode(head, blob)
	if err != nil {
		return nil, nil, c.failure(err)
	}
	if declare := c.permit(s, args); declare != "" {
		return nil, nil, c.failure(api.Errorf(c.denied, "%s is not allowed: declare capabilities %s in the manifest", name, declare))
	}
	if s.Record != nil {
		if err := s.Record.Ensure(ctx); err != nil {
			return nil, nil, c.failure(err)
		}
	}
	if t.admitEgress != nil && leaves(name) {
		if err := t.admitEgress(ctx, s.Tenant); err != nil {
			return nil, nil, c.failure(err)
		}
	}
	out, replyBlob, err := c.run(ctx, s, args, blob)
	if err != nil {
		return nil, nil, c.failure(err)
	}
	replyHead, err = json.Marshal(out)
	return replyHead, replyBlob, err
}

// leaves reports whether a call sends one request to another server. Those of cs.ai may send several,
// each of which is admitted by modelCalls.
func leaves(name string) bool {
	switch name {
	case network.Fetch.Name, network.SocketOpen.Name:
		return true
	}
	return false
}

// publicError keeps a coded error's code and text, without its causes, and hides any other.
func publicError(err error) error {
	var coded *api.Error
	var detailed *sandbox.HostError
	switch {
	case errors.As(err, &detailed):
		return detailed // made for the function
	case errors.As(err, &coded):
		return api.Errorf(coded.Code, "%s", coded.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(api.CodeRuntimeTimeout, "the invocation ended before the call did")
	}
	return api.Errorf(api.CodeInternal, "the host call failed")
}

// invalid is the refusal of an argument.
func invalid(format string, args ...any) error {
	return api.Errorf(api.CodeHostInvalidArgument, format, args...)
}

// allows reports whether list names op; "*" names all.
func allows(list []string, op string) bool {
	return slices.Contains(list, op) || slices.Contains(list, "*")
}

// quoted returns v as JSON, for the text of a capability to declare.
func quoted(v string) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strings.ToValidUTF8(v, "?")
	}
	return string(b)
}

// shortened cuts a name of any length to the part that an error text shows, at most 64
// bytes.
func shortened(name string) string { return name[:min(len(name), 64)] }

// mustJSON encodes a value of our own types, which cannot fail.
func mustJSON(v any) json.RawMessage {
	b, err := api.EncodeJSON(v)
	if err != nil {
		panic(fmt.Sprintf("hostcall: encode %T: %v", v, err))
	}
	return b
}

// newID returns a random id.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
