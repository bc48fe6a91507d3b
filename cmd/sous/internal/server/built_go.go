//go:build !cgo

package server

const builtWithCgo = false
