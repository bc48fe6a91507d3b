//go:build !console

package console

// A plain go build embeds no console; its page says how to get one.
var archive []byte
