package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/resolve"
)

// nestedEngine runs the functions that cs.invoke calls: it is the Engine of hostcall. It
// exists so that package hostcall, which invoker imports, needs no import of invoker.
type nestedEngine struct{ i *Invoker }

// Hold counts a call among the work that Close waits for. The calling activation is counted
// at that moment, so the count is not zero and Close cannot have finished.
func (e nestedEngine) Hold() { e.i.active.Add(1) }

// Release ends what Hold began.
func (e nestedEngine) Release() { e.i.active.Done() }

// Invoke runs the function.
func (e nestedEngine) Invoke(ctx context.Context, inv api.Invocation) (*api.Outcome, error) {
	return e.i.Invoke(ctx, inv)
}

// checkHeld refuses a call that would wait for itself: one whose callers hold all slots of
// its version, or all processes of its tenant, until the call has ended. Errors: CodeHostInvokeCycle,
// CodeCapacityLimit.
//
// With max_concurrency 2, for example, a → b → a is allowed, because the first a holds one
// of two slots; the third a of a → a → a waits for the first two and is refused. The check
// knows the callers of this call only. Two chains that hold each other's slots are not
// found: they end when their wait for a slot does, after a second.
func (i *Invoker) checkHeld(inv *api.Invocation, res *resolve.Resolution) error {
	held, limit := 0, res.Version.Config.MaxConcurrency
	for _, c := range inv.Callers {
		if c.Namespace == inv.Namespace && c.Function == inv.Function && c.Version == res.Version.Version {
			held++
		}
	}
	switch {
	case held >= limit:
		return api.Errorf(api.CodeHostInvokeCycle, "the call would wait for itself: its callers hold all slots of the version (max_concurrency %d): %s", limit, inv.CallChain())
	case len(inv.Callers) >= i.pool.MaxOfTenant():
		return api.Errorf(api.CodeCapacityLimit, "the call would wait for itself: its callers hold all sandboxes of this server that one tenant may use (%d): %s", i.pool.MaxOfTenant(), inv.CallChain())
	}
	return nil
}
