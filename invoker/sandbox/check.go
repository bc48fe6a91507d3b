package sandbox

import (
	"context"

	"github.com/codesous/sous/api"
)

// Check compiles prog's bundle in a child that ends thereafter, and keeps the
// script for the version's first activation. What cannot be used is
// CodeValidationSource, with file, line, column and message in Fields.
func (p *Pool) Check(ctx context.Context, prog *Program) error {
	select {
	case p.checks <- struct{}{}:
		defer func() { <-p.checks }()
	case <-ctx.Done():
		return ctx.Err()
	case <-p.ctx.Done():
		return errClosed()
	}
	source, err := prog.Bundle(ctx)
	if err != nil {
		return err
	}
	child := p.takeSpare()
	if child == nil {
		if child, err = p.spawn(ctx); err != nil {
			return err
		}
	}
	defer child.end()
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
	}
	return nil
}
