package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/memory"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// Program is one version of one function, which a child serves. It must not be changed once
// it was passed to a Pool: sandboxes keep it.
type Program struct {
	// Key is tenant/namespace/function/version. A child never serves two.
	Key string
	// Digest is the bundle's sha256 in hex. With Tenant, Entry and Handler it names
	// the compiled script; "" keeps the script out of the cache.
	Digest         string
	Entry, Handler string
	MemoryMB       int
	// Instance lets one global scope of the child serve many activations.
	Instance  bool
	Env       map[string]string
	Tenant    string
	Namespace string
	Function  string
	Version   int64
	// Bundle returns the canonical tar. It is called only when the script is not cached.
	Bundle func(ctx context.Context) ([]byte, error)
}

// scriptKey names a script that a child made of a bundle. Tenants do not share
// scripts: a child that read hostile source made it.
type scriptKey struct{ tenant, digest, entry, handler string }

func (p *Program) scriptKey() scriptKey {
	return scriptKey{p.Tenant, p.Digest, p.Entry, p.Handler}
}

// scripts is the cache of compiled scripts: the text that a child made of a bundle, by
// scriptKey.
type scripts = otter.Cache[scriptKey, []byte]

// newScripts returns a cache of at most maxBytes. An entry counts its script and 256 bytes.
func newScripts(maxBytes int64) (*scripts, error) {
	return otter.New(&otter.Options[scriptKey, []byte]{
		MaximumWeight: uint64(maxBytes),
		StatsRecorder: stats.NewCounter(),
		Weigher:       func(_ scriptKey, script []byte) uint32 { return uint32(len(script)) + 256 },
	})
}

// ScriptStore keeps compiled scripts for the processes that use one store. It belongs to one
// build of the sandbox child: another build may compile the same bundle to another script.
type ScriptStore interface {
	// Load returns a script, nil if there is none.
	Load(ctx context.Context, tenant, digest, entry, handler string) ([]byte, error)
	Save(ctx context.Context, tenant, digest, entry, handler string, script []byte) error
}

// saveTimeout bounds the time that a compiled script's saving delays its first activation.
const saveTimeout = 2 * time.Second

// storedScript returns the script of prog from the store, nil if it has to be compiled.
func (p *Pool) storedScript(ctx context.Context, prog *Program) []byte {
	if p.cfg.Scripts == nil || prog.Digest == "" {
		return nil
	}
	script, err := p.cfg.Scripts.Load(ctx, prog.Tenant, prog.Digest, prog.Entry, prog.Handler)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("a compiled script could not be read; the bundle is compiled again", zap.String("tenant", prog.Tenant), zap.Error(err))
	}
	return script
}

// saveScript saves the script that was compiled for prog. A script that is not saved is
// compiled again by the next process.
func (p *Pool) saveScript(ctx context.Context, prog *Program, script []byte) {
	if p.cfg.Scripts == nil || prog.Digest == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	err := p.cfg.Scripts.Save(ctx, prog.Tenant, prog.Digest, prog.Entry, prog.Handler, script)
	if err != nil {
		p.log.Warn("a compiled script was not saved", zap.String("tenant", prog.Tenant), zap.Error(err))
	}
}

// assign sends the child its program: source is a bundle tar or, with head.Compiled, a
// script. It returns the script that the child compiled from a bundle, nil otherwise. The
// child's memory limit holds from here on. After an error the child must be ended; after a
// check, it ends by itself.
//
// Errors: CodeValidationSource for source that the child refuses, or that it cannot get
// through in time or memory; CodeValidationBundle for a bundle that fits no frame; ctx's;
// others if the child was killed or broke the protocol.
func (p *process) assign(ctx context.Context, head wire.Assign, source []byte) ([]byte, error) {
	frame, err := wire.AppendMessage(nil, wire.KindAssign, head, source)
	if err != nil {
		return nil, api.Wrap(api.CodeValidationBundle, err, "the bundle is too large for a sandbox")
	}
	defer p.boundBy(ctx)()
	limit := p.compileLimit(head, len(source))
	defer p.boundCPU(limit)()
	// A child that refuses, or has nothing to serve, ends by itself.
	p.expected.Store(int32(endUnusable))
	if head.CheckOnly {
		p.expected.Store(int32(endChecked))
	}
	if _, err := p.socket.Write(frame); err != nil {
		return nil, p.assignError(ctx, limit, err)
	}
	kind, payload, err := p.frames.Next()
	if err != nil {
		return nil, p.assignError(ctx, limit, err)
	}
	switch kind {
	case wire.KindReady:
		var ready wire.Ready
		script, err := wire.ParseMessage(payload, &ready)
		if err != nil {
			return nil, p.assignError(ctx, limit, err)
		}
		if head.CheckOnly {
			return script, nil
		}
		p.expected.Store(int32(endCrash))
		p.frames.Bound(wire.MaxActivationFrame)
		return script, p.tighten(ready, head.MemoryMB)
	case wire.KindRefused:
		var refused wire.Refused
		if _, err := wire.ParseMessage(payload, &refused); err != nil {
			return nil, p.assignError(ctx, limit, err)
		}
		return nil, sourceError(refused)
	}
	return nil, p.assignError(ctx, limit, fmt.Errorf("%w: kind %d for Ready", wire.ErrFrame, kind))
}

// compilePerMiB is added to CompileCPU for each whole MiB of a source: packages may be large, and a
// tenant has to send as much to keep the compiler busy for longer.
const compilePerMiB = time.Second

// compileLimit returns the processor time that the child may use for an assignment. What a
// publication was accepted with must not be refused at a call because the same work took a
// little longer.
func (p *process) compileLimit(head wire.Assign, bytes int) time.Duration {
	limit := p.compileCPU + time.Duration(bytes>>20)*compilePerMiB
	if head.CheckOnly {
		return limit
	}
	return 2 * limit
}

// tighten sets the hard memory limit before the first activation. The size that the child
// claims to have mapped counts only up to the limit that held until now: a larger one would
// raise the limit. A child without /proc claims 0, and the size at its Hello counts.
func (p *process) tighten(ready wire.Ready, memoryMB int) error {
	mapped := uint64(max(ready.MappedBytes, 0))
	if mapped == 0 {
		mapped = p.mapped
	}
	limit := memory.AddressSpaceLimit(min(mapped, p.limit), memoryMB)
	if err := p.limitAddressSpace(limit, limit); err != nil {
		return fmt.Errorf("sandbox: memory limit: %w", err)
	}
	return nil
}

// assignError returns the error of an assignment that got no valid answer: ctx's;
// CodeValidationSource if the child exceeded the time or its memory or its stack over the
// source; any other error if another process killed it, for example the kernel when the
// host is out of memory.
func (p *process) assignError(ctx context.Context, limit time.Duration, err error) error {
	p.killFor(endUnusable)
	<-p.gone
	if ctx.Err() != nil {
		return ctx.Err()
	}
	reason := "the sandbox that read it ended: " + p.exit.reason()
	switch {
	case p.exit.why == endCompile:
		reason = fmt.Sprintf("reading and compiling it took more than %s of processor time", limit)
	case !isTimeout(err) && p.exit.state != nil && !p.exit.state.Exited():
		return fmt.Errorf("sandbox: the child was killed while it loaded its program (%s): %w", p.exit.reason(), err)
	case isTimeout(err):
		reason = fmt.Sprintf("reading and compiling it took more than %s", p.loadTimeout)
	case p.exit.outOfMemory():
		reason = "reading and compiling it takes too much memory"
	case p.exit.stackOverflow():
		reason = "it is nested too deeply"
	}
	return api.Wrap(api.CodeValidationSource, errors.Join(err, errors.New(p.exit.stderr)),
		"the source cannot be used: "+reason)
}

// sourceError returns the child's refusal as CodeValidationSource: each problem with file,
// line and column, and the first one as the message, "function.js:3:9: Unexpected token".
// The texts are the child's and are cut.
func sourceError(r wire.Refused) error {
	message := "the source cannot be used"
	fields := make([]api.FieldError, 0, min(len(r.Problems), maxProblems))
	for i, p := range r.Problems {
		if i == maxProblems {
			break
		}
		fields = append(fields, api.FieldError{
			Path:    api.TruncateText(p.File, api.MaxBundlePath),
			Line:    p.Line,
			Column:  p.Column,
			Message: api.TruncateText(p.Message, maxProblemBytes),
		})
	}
	if len(fields) > 0 {
		f := fields[0]
		message = f.Message
		switch {
		case f.Path != "" && f.Line > 0:
			message = fmt.Sprintf("%s:%d:%d: %s", f.Path, f.Line, f.Column, f.Message)
		case f.Path != "":
			message = f.Path + ": " + f.Message
		}
	}
	return api.Errorf(api.CodeValidationSource, "%s", message).WithFields(fields...)
}

// Bounds of what a refusal may say.
const (
	maxProblems     = 50
	maxProblemBytes = 4 << 10
)

// outOfMemory reports whether the child died of a memory limit: Go's runtime reports that
// on stderr, in several ways. A hostile child can write these words too; it then only
// changes the error of its own activation.
func (e exit) outOfMemory() bool {
	if e.overLimit {
		return true
	}
	for _, text := range []string{
		"out of memory",
		"cannot allocate",
		"cannot reserve",
		unix.ENOMEM.Error(),
		"failed to create new OS thread",
	} {
		if strings.Contains(e.stderr, text) {
			return true
		}
	}
	return false
}

// stackOverflow reports whether the child died of Go's stack limit.
func (e exit) stackOverflow() bool {
	return strings.Contains(e.stderr, "stack exceeds") || strings.Contains(e.stderr, "stack overflow")
}
