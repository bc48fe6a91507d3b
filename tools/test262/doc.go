// Package test262 runs ECMAScript's conformance suite against functions: each test is
// deployed as a module and run as a handler in a sandbox child, through the same compiler
// and the same realm as any function. The suite itself is not part of the repository:
//
//	make test262 TEST262=/path/to/a/checkout
//
// It has no code of its own, only tests. See docs/javascript.md for the figures.
package test262
