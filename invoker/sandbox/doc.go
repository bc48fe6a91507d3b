// Package sandbox runs functions in child processes: it spawns and confines
// them, keeps warm ones in a pool, hands each its program, and speaks the wire
// protocol with it for one activation at a time.
//
// A child serves one version of one function and nothing else, ever; what runs
// in it is package child. The parent never parses tenant source and never trusts
// what a child says: lengths, kinds, JSON and claims about memory are checked.
package sandbox
