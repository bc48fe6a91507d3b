package child

import (
	"slices"

	"github.com/dop251/goja/ast"
)

// A function that calls itself through others is found in the graph of calls: an edge leads
// from a function to all functions of the script with a name that it calls, or passes to a
// call. Names stand for functions here, so the graph has edges that no call takes, which
// costs a little time. It lacks calls of values without a name, such as the
// parameter of a function.

// calls records what the functions around a call may call.
func (s *finder) calls(callee ast.Expression, arguments []ast.Expression) {
	if optional, ok := callee.(*ast.Optional); ok {
		callee = optional.Expression
	}
	if bracket, ok := callee.(*ast.BracketExpression); ok {
		switch member := bracket.Member.(type) {
		case *ast.StringLiteral:
			s.called(member.Value.String())
		case *ast.NumberLiteral:
		default: // any function, such as visitors[node.type](node)
			if n := len(s.open); n > 0 {
				s.functions[s.open[n-1]].dispatches = true
			}
		}
	}
	if dot, ok := callee.(*ast.PrivateDotExpression); ok {
		s.called("#" + dot.Identifier.Name.String())
	}
	s.called(nameOf(callee))
	for _, argument := range arguments {
		s.called(nameOf(argument))
	}
}

// called adds a name to the calls of the innermost function. A function without a name is
// likely called by the one around it.
func (s *finder) called(name string) {
	if name == "" {
		return
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		f := &s.functions[s.open[i]]
		if !slices.Contains(f.calls, name) {
			f.calls = append(f.calls, name)
		}
		if f.name != "" {
			return
		}
	}
}

// cyclic returns functions of which each cycle of the graph has at least one: those to which
// an edge leads back in a search of depth first.
func cyclic(functions []namedFunction) []bool {
	named := map[string][]int{}
	for i, f := range functions {
		if f.name != "" {
			named[f.name] = append(named[f.name], i)
		}
	}
	const (
		unseen = iota
		active
		done
	)
	heads, state := make([]bool, len(functions)), make([]int, len(functions))
	type frame struct {
		function int
		left     []int // callees to visit
	}
	calleesOf := func(i int) (callees []int) {
		for _, name := range functions[i].calls {
			callees = append(callees, named[name]...)
		}
		return callees
	}
	for root := range functions {
		if state[root] != unseen {
			continue
		}
		state[root] = active
		for path := []frame{{root, calleesOf(root)}}; len(path) > 0; {
			top := &path[len(path)-1]
			if len(top.left) == 0 {
				state[top.function] = done
				path = path[:len(path)-1]
				continue
			}
			next := top.left[0]
			top.left = top.left[1:]
			switch state[next] {
			case active:
				heads[next] = true
			case unseen:
				state[next] = active
				path = append(path, frame{next, calleesOf(next)})
			}
		}
	}
	return heads
}
