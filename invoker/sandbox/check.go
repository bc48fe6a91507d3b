package sandbox

import (
	"context"

	"github.com/codesous/sous/api"
)

// Check compiles prog's bundle in a child that ends thereafter, and keeps the script for the
// version's first activation, in this process and in the script store. Nothing of the source
// runs: its modules are not evaluated. A source that cannot be used is CodeValidationSource,
// with file, line, column and message in Fields. Other errors: CodeCapacityLimit if too many
// checks of the tenant wait, CodeShuttingDown, ctx's, those of prog.Bundle, a child that cannot
// be started.
//
// The child is bound by memory.CompileRoom, CompileCPU and LoadTimeout only, not by the pool's budget:
// publishing works on a busy server. p.checks bounds the number of these children.
func (p *Pool) Check(ctx context.Context, prog *Program) error {
	leave, err := p.checks.Enter(ctx, p.ctx, prog.Tenant)
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
	p.confine(child, prog.Tenant)
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
