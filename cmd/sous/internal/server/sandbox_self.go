//go:build !sandboxchild

package server

// sandboxChild is empty in a plain go build: sous is then its own sandbox child (see
// package childproc).
var sandboxChild []byte
