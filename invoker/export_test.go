package invoker

import "context"

// Overhear gives heard, at each call of name, what makes a call of cs.invoke in the
// name of the same activation: it can be used after that has ended, as a call of the
// sandbox that is late would.
func (i *Invoker) Overhear(name string, heard func(invoke func(ctx context.Context, function string) error)) {
	row := i.host.table[name]
	run := row.run
	row.run = func(ctx context.Context, s *scope, args any, blob []byte) (any, []byte, error) {
		heard(func(ctx context.Context, function string) error {
			_, _, err := i.host.call(ctx, s, "invoke", mustJSON(invokeArgs{Function: function}), nil)
			return err
		})
		return run(ctx, s, args, blob)
	}
	i.host.table[name] = row
}
