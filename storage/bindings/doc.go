// Package bindings keeps the Cadence worker bindings, an index of them for each
// namespace, and the status that replicas report of them.
package bindings
