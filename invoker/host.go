package invoker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox"
)

// scope is whose activation makes a host call, and what its version may do. It
// is set by the parent: nothing in it comes from the sandbox.
type scope struct {
	tenant, namespace, function string
	capabilities                api.Capabilities
	heartbeat                   func(details json.RawMessage) error // nil but for activities
	installs                    installUse
	visible                     *visibility               // the activation's record is stored before its effects
	nest                        *nest                     // nil where nothing can be called from it
	secrets                     *secretsRun               // nil where the version names none
	tell                        func(order int64, t told) // nil but for the attempts of jobs
}

// hostCall is one side effect that a function can ask for. Every call passes
// through Host.call, which knows no other way to reach run than past permit.
type hostCall struct {
	// decode reads the arguments; unknown ones are refused.
	decode func(head, blob []byte) (any, error)
	// permit gives "" if the version may do this, else what it must declare.
	permit func(s *scope, args any) (declare string)
	run    func(ctx context.Context, s *scope, args any, blob []byte) (head any, reply []byte, err error)
	// denied is the code of what permit refuses, and failure makes of any error what
	// the function is told.
	denied  api.Code
	failure func(error) error
}

// row makes a hostCall of typed functions.
func row[A any](
	permit func(*scope, A) string,
	run func(context.Context, *scope, A, []byte) (any, []byte, error),
) hostCall {
	return hostCall{
		decode: func(head, _ []byte) (any, error) {
			var args A
			dec := json.NewDecoder(bytes.NewReader(head))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&args); err != nil {
				return nil, api.Errorf(api.CodeHostInvalidArgument, "malformed arguments: %v", err)
			}
			return args, nil
		},
		permit: func(s *scope, args any) string { return permit(s, args.(A)) },
		run: func(ctx context.Context, s *scope, args any, blob []byte) (any, []byte, error) {
			return run(ctx, s, args.(A), blob)
		},
		denied: api.CodeRuntimeCapabilityDenied, failure: publicError,
	}
}

// host performs the side effects of sandboxes: the one table of all that a
// function can reach, and the one place where capabilities are checked.
type host struct {
	table map[string]hostCall
}

// services are what the rows of the table work with.
type services struct {
	kv      *kvHost
	fetch   *fetchHost
	cadence *cadenceHost
	queue   *queueHost
	invoke  *invokeHost
	secrets secretHost
	job     *jobHost
	storage *storageHost
}

func newHost(s services) *host {
	table := map[string]hostCall{
		"kv.get":     row(s.kv.permitGet, s.kv.get),
		"kv.set":     row(s.kv.permitSet, s.kv.set),
		"kv.del":     row(s.kv.permitDel, s.kv.del),
		"http.fetch": row(s.fetch.permit, s.fetch.fetch),
		"invoke":     row(s.invoke.permit, s.invoke.invoke),

		"secrets.get": row(s.secrets.permit, s.secrets.get),

		"queue.enqueue": row(s.queue.permit, s.queue.enqueue),

		"job.progress":   row(s.job.permitProgress, s.job.progress),
		"job.checkpoint": row(s.job.permitCheckpoint, s.job.checkpoint),

		"cadence.heartbeat": row(s.cadence.permitHeartbeat, s.cadence.heartbeat),
		"cadence.start":     row(s.cadence.permit, s.cadence.start),
		"cadence.signal":    row(s.cadence.permit, s.cadence.signal),
	}
	maps.Copy(table, s.storage.rows())
	return &host{table: table}
}

// knows says whether there is a call of that name.
func (h *host) knows(name string) bool {
	_, ok := h.table[name]
	return ok
}

// call does what a sandbox asked for. What it returns as an error reaches the
// function as code and message, so internal causes are named, not shown.
func (h *host) call(ctx context.Context, s *scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error) {
	c, ok := h.table[name]
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
	if err := s.visible.ensure(ctx); err != nil {
		return nil, nil, c.failure(err)
	}
	out, replyBlob, err := c.run(ctx, s, args, blob)
	if err != nil {
		return nil, nil, c.failure(err)
	}
	replyHead, err = json.Marshal(out)
	return replyHead, replyBlob, err
}

// publicError keeps a coded error's text and hides any other.
func publicError(err error) error {
	var coded *api.Error
	var told *sandbox.HostError
	switch {
	case errors.As(err, &told):
		return told // made for the function
	case errors.As(err, &coded):
		return api.Errorf(coded.Code, "%s", coded.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return api.Errorf(api.CodeRuntimeTimeout, "the invocation ended before the call did")
	}
	return api.Errorf(api.CodeInternal, "the host call failed")
}

// allows says whether list names op; "*" names all.
func allows(list []string, op string) bool {
	return slices.Contains(list, op) || slices.Contains(list, "*")
}

// quoted is v as JSON, for the text of what to declare.
func quoted(v string) string {
	b, err := json.Marshal(v)
	if err != nil {
		return strings.ToValidUTF8(v, "?")
	}
	return string(b)
}
