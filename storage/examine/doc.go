// Package examine judges the servers of a store: which product and version they are,
// whether their settings keep what they accept, and whether their clocks agree with this
// process's. The requirements are those of docs/storage.md.
//
// Servers makes one Report; a ClockWatch repeats the comparison of the clocks.
package examine
