// Package access keeps the API keys of tenants, the bootstrap of the first one, and the
// audit of what callers changed.
package access
