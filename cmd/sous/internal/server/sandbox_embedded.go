//go:build sandboxchild

package server

import _ "embed"

// sandboxChild is invoker/sandbox/childmain, which `make build` puts here. Alone
// it starts in half the time and holds half the memory that sous needs as its
// own child.
//
//go:embed sandbox-child
var sandboxChild []byte
