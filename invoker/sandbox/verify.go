package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

const (
	// verifyTimeout is how long the modules of a version may take to load at its publication.
	verifyTimeout = 10 * time.Second
	// verifyMemoryMB bounds the memory of that, in MB: it is not part of the pool's budget.
	verifyMemoryMB = 512
)

// Verify evaluates prog's modules in a child that ends thereafter, with its limits and its
// environment, and returns the handlers: api.HandlerFunction or the methods of the object, nil if they are not
// known. It calls no handler. Modules that fail are
// CodeValidationSource, with the place in Fields if the error has one. Other errors: those of
// Check, which must have accepted the source.
//
// No host call has an effect. Modules that make one are not judged: what they do after it
// depends on the answer. The same holds for modules that need more than verifyMemoryMB and may
// have it.
func (p *Pool) Verify(ctx context.Context, prog *Program) (handlers []string, err error) {
	leave, err := p.checks.Enter(ctx, p.ctx, prog.Tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	limited := *prog
	limited.MemoryMB = min(prog.MemoryMB, verifyMemoryMB)
	s := &Sandbox{pool: p, prog: &limited}
	defer func() {
		if s.child != nil {
			s.child.end(endChecked)
		}
	}()
	script, compiled := p.scripts.GetIfPresent(prog.scriptKey())
	if !compiled {
		script, err = prog.Bundle(ctx)
		if err != nil {
			return nil, err
		}
	}
	if _, err := p.assign(ctx, s, &limited, script, compiled); err != nil {
		return nil, err
	}
	var reached atomic.Bool // a host call
	result := s.Run(ctx, Call{
		Head: wire.InvokeHead{
			ActivationID: uuid.Must(uuid.NewV7()).String(), Attempt: 1, Flags: wire.FlagVerify,
			Ref: []byte(`{}`), Trigger: []byte(`{"type":"` + api.TriggerAPI + `","source":{}}`), Principal: []byte(`{}`),
		},
		Event:    []byte("null"),
		Deadline: time.Now().Add(verifyTimeout),
		Host: func(context.Context, string, []byte, []byte) ([]byte, []byte, error) {
			reached.Store(true)
			return nil, nil, api.Errorf(api.CodeInternal, "the modules are only verified")
		},
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case result.Error == nil:
		return handlers, json.Unmarshal(result.Value, &handlers)
	case reached.Load(), result.Error.Type == api.ErrMemoryLimit && limited.MemoryMB < prog.MemoryMB:
		return nil, nil
	}
	return nil, unloadable(result.Error)
}

// placeInStack matches the place of a frame: "    at f (lib/a.js:3:9)" and "    at a.js:3:9".
var placeInStack = regexp.MustCompile(`(?m)^    at (?:.*\()?([^\s()]+):(\d+):(\d+)\)?$`)

// unloadable returns the CodeValidationSource of modules that fail when they are loaded.
func unloadable(failed *api.ActivationError) error {
	message := failed.Message
	switch failed.Type {
	case api.ErrException:
		message = strings.TrimPrefix(message, "Unhandled promise rejection: ")
	case api.ErrTimeout:
		message = fmt.Sprintf("it takes more than %d s", int(verifyTimeout.Seconds()))
	}
	field := api.FieldError{Path: "", Message: message + " (thrown when the modules are loaded)"}
	if failed.Type != api.ErrException {
		field.Message = "the modules cannot be loaded: " + message
	}
	text := field.Message
	if place := placeInStack.FindStringSubmatch(failed.Stack); place != nil {
		field.Path = place[1]
		field.Line, _ = strconv.Atoi(place[2]) // digits
		field.Column, _ = strconv.Atoi(place[3])
		text = strings.Join(place[1:], ":") + ": " + text
	}
	return api.Errorf(api.CodeValidationSource, "%s", text).WithFields(field)
}
