//go:build !sandboxchild

package server

// A plain go build embeds no child: sous is then its own sandbox child (see package childproc).
const embedsSandboxChild = false

var sandboxChild []byte
