// Package childproc turns a re-executed sous into a sandbox child.
//
// It does so in its init function: Go initialises a package as soon as its
// imports are, in the order of import paths, so this one runs before the store,
// the HTTP stack and the command line are set up. A child spends neither time nor memory
// on those. Therefore this package imports the runtime of the child and no other package of
// the project.
//
// A binary that embeds the program of its sandboxes (make build) links no interpreter: its
// build leaves this package empty.
package childproc
