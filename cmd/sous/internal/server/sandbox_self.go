//go:build !sandboxchild

package server

// sandboxChild is empty where sous was built by a plain go build: it then is its
// own sandbox child (see childproc).
var sandboxChild []byte
