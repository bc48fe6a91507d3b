// Package house holds the tests that keep the repository readable: which package
// imports which, how large a package is, how its comments and test failures are
// written. It has no code of its own.
package house
