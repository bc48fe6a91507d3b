//go:build cgo

package server

const builtWithCgo = true
