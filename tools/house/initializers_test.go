package house

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestInitializersOnlyDeclare refuses statements that change a variable of an outer
// scope within the initializer of an if or a switch: a reader of the condition
// overlooks them.
func TestInitializersOnlyDeclare(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.file == nil {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			var init ast.Stmt
			switch n := n.(type) {
			case *ast.IfStmt:
				init = n.Init
			case *ast.SwitchStmt:
				init = n.Init
			case *ast.TypeSwitchStmt:
				init = n.Init
			}
			if init == nil {
				return true
			}
			if a, ok := init.(*ast.AssignStmt); !ok || a.Tok != token.DEFINE {
				t.Errorf("%s: got a statement that changes a variable in an initializer, want it before the condition", positions.Position(init.Pos()))
			}
			return true
		})
	}
}
