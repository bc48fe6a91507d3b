package sandbox

import (
	"context"

	"github.com/codesous/sous/api"
)

// Check compiles prog's bundle in a child that ends thereafter, and keeps the script for the
// version's first activation, in this process and in the script store. Nothing of the source
// runs: its modules are not evaluated. A source that cannot be used is CodeValidationSource,
// with file, line, column and message in Fields. Other errors: CodeShuttingDown, ctx's, those
// of prog.Bundle, a child that cannot be started.
//
// The child is bound by compileRoom and LoadTimeout only, not by the pool's budget:
// publishing works on a busy server.
func (p *Pool) Check(ctx context.Context, prog *Program) error {
	leave, err := p.queueCheck(ctx, prog.Tenant)
	if err != nil {
		return err
	}
	defer leave()
	source, err := prog.Bundle(ctx)
	if err != nil {
		return err
	}
	child := p.takeSpare()
	if child == nil {
		child, err = p.spawn(ctx)
		if err != nil {
			return err
		}
	}
	defer child.end(endChecked)
	head := prog.assignment(false)
	head.CheckOnly = true
	script, err := child.assign(ctx, head, source)
	if err != nil {
		return err
	}
	if len(script) == 0 {
		return api.Errorf(api.CodeInternal, "the sandbox compiled the source to nothing")
	}
	if prog.Digest != "" {
		p.scripts.Set(prog.scriptKey(), script)
		p.saveScript(ctx, prog, script)
	}
	return nil
}

// queue is a slot for one compilation at a time, and the number of its users: those that
// have it or wait for it. Pool.checking keeps it while there are users.
type queue struct {
	slot  chan struct{}
	users int
}

// queueCheck waits for a slot to compile in: first for the tenant's own, so that the slow
// sources of one tenant take only one of the pool's slots. release frees both, the pool's
// first. Errors: ctx's, CodeShuttingDown.
func (p *Pool) queueCheck(ctx context.Context, tenant string) (release func(), err error) {
	p.mu.Lock()
	own := p.checking[tenant]
	if own == nil {
		own = &queue{slot: make(chan struct{}, 1)}
		p.checking[tenant] = own
	}
	own.users++
	p.mu.Unlock()
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		own.users--
		if own.users == 0 {
			delete(p.checking, tenant)
		}
	}
	if err := p.enter(ctx, own.slot); err != nil {
		forget()
		return nil, err
	}
	if err := p.enter(ctx, p.checks); err != nil {
		<-own.slot
		forget()
		return nil, err
	}
	return func() {
		<-p.checks
		<-own.slot
		forget()
	}, nil
}

// enter takes a slot, or fails where ctx or the pool ends first.
func (p *Pool) enter(ctx context.Context, slot chan struct{}) error {
	select {
	case slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return errClosed()
	}
}
