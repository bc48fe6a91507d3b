package regex

import "github.com/codesous/sous/invoker/sandbox/child/regex/ucd"

// node is a part of a pattern.
type node interface{}

type (
	charNode struct{ c rune }
	setNode  struct{ set ucd.Set }
	seqNode  []node
	altNode  []node
	// groupNode is a capturing group.
	groupNode struct {
		index int
		body  node
	}
	quantNode struct {
		body     node
		min, max int // max < 0: without bound
		lazy     bool
		lo, hi   int // the groups in body are lo to hi-1
	}
	assertNode struct {
		kind  op
		words *set // for word boundaries
	}
	lookNode struct {
		body         node
		back, negate bool
		lo, hi       int
	}
	// backrefNode names its groups by number, or by a name that may come later.
	backrefNode struct {
		index  int
		name   string
		ignore bool // case
	}
)

// mode is the flags that hold at a place of the pattern.
type mode struct{ ignoreCase, multiline, dotAll bool }
