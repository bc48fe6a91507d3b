// Package bindings keeps the Cadence worker bindings, an index of them for each
// namespace, and the status that replicas report of them.
//
// A binding is a record and a name in the index of its namespace (bindings.go). Its status is
// a hash with a field for each replica that runs a worker for it (status.go):
//
//	cs:cadence:t_acme01:default:worker:mail:meta      {"name":"mail",…,"revision":2,…}
//	cs:cadence:t_acme01:default:workers:index         {mail}
//	cs:cadence:t_acme01:default:worker:mail:status    replica-1 {"state":"running",…}
//	cs:cadence:namespaces                             {t_acme01/default}
//
// The record and the index change in scripts, so a binding is never half changed: the name is
// added before the record and removed after it, and readers skip a name without a record. A
// supervisor finds all bindings of all tenants by All, and learns of changes by notices.
package bindings
