package storage

import (
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
)

// Keys builds every key of the store; no other file writes one. Names never
// contain a colon or a brace (see api.ValidateName), so no key can be mistaken for
// another, and the tenant's braces are the first in any key. docs/storage.md lists the keys
// with their types and contents. Some keys of version 7 of the function mail in the
// namespace default of the tenant t_acme01, on a single node and on a cluster:
//
//	cs:fn:t_acme01:default:mail:ver:7:meta
//	cs:fn:{t_acme01}:default:mail:ver:7:meta
//
// The methods only concatenate: they accept names that are not valid.
type Keys struct {
	// hashTags wraps tenants in braces, so that a cluster keeps all of a
	// tenant's keys in one slot: it hashes only the text between the first braces.
	hashTags bool
}

// Keys returns the builder of the store's keys.
func (s *Store) Keys() Keys { return s.keys }

// Keys that belong to no tenant. They are written by calls of their own, since
// in a cluster they share no slot with a tenant's.
const (
	keyTenants         = "cs:tenants"
	keyTaskTenants     = "cs:tasks:tenants" // tenants that have ever had a task
	keyDocumentTenants = "cs:doc:tenants"   // tenants that have ever had documents
	channelChanges     = "cs:changes"
)

// ActivationSweeps is the hash of the sweeper's cursors, a field for each function.
func (Keys) ActivationSweeps() string { return "cs:sweep:act" }

// BindingNamespaces is the set of the namespaces, each as t/ns, that have ever had a worker binding.
func (Keys) BindingNamespaces() string { return "cs:cadence:namespaces" }

// TriggerNamespaces is the set of the namespaces, each as t/ns, that have ever had a queue trigger.
func (Keys) TriggerNamespaces() string { return "cs:trigger:namespaces" }

// DomainOwners is the hash of the owners of verified custom domains, by domain. Tenants share it,
// since it decides between them.
func (Keys) DomainOwners() string { return "cs:domain:owners" }

// WebhookTenants is the set of the tenants that have ever had a webhook.
func (Keys) WebhookTenants() string { return "cs:webhook:tenants" }

// DocumentChangesChannel carries the namespaces of documents, each as t/install/ns, that
// were written to.
func (Keys) DocumentChangesChannel() string { return "cs:doc:changes" }

// DocumentCursorKey holds the key that signs cursors. No tenant is called cursorkey.
func (Keys) DocumentCursorKey() string { return "cs:doc:cursorkey" }

// APIKeyTenants is the set of the tenants that have ever had an API key. It cannot be a
// tenant's own set (see APIKeySet): api.ValidateTenant refuses its name.
func (Keys) APIKeyTenants() string { return "cs:keys:tenants" }

// APIKeyBootstrap is the lock of a bootstrap; for its name see APIKeyTenants.
func (Keys) APIKeyBootstrap() string { return "cs:keys:bootstrap" }

func (k Keys) tenant(t string) string {
	if k.hashTags {
		return "{" + t + "}"
	}
	return t
}

// Namespaces is the set of a tenant's namespaces.
func (k Keys) Namespaces(t string) string { return "cs:tenant:" + k.tenant(t) + ":namespaces" }

// FunctionIndex is the set of a namespace's functions.
func (k Keys) FunctionIndex(t, ns string) string {
	return "cs:fn:" + k.tenant(t) + ":" + ns + ":index"
}

func (k Keys) function(t, ns, fn string) functionKeys {
	return functionKeys("cs:fn:" + k.tenant(t) + ":" + ns + ":" + fn)
}

// functionKeys is the prefix of a function's keys.
type functionKeys string

func (f functionKeys) meta() string           { return string(f) + ":meta" }
func (f functionKeys) versionSeq() string     { return string(f) + ":version_seq" }
func (f functionKeys) draft(id string) string { return string(f) + ":draft:" + id }
func (f functionKeys) versions() string       { return string(f) + ":versions" }
func (f functionKeys) aliases() string        { return string(f) + ":aliases" }
func (f functionKeys) alias(a string) string  { return string(f) + ":alias:" + a }

func (f functionKeys) versionMeta(n int64) string {
	return string(f) + ":ver:" + strconv.FormatInt(n, 10) + ":meta"
}

func (f functionKeys) versionBundle(n int64) string {
	return string(f) + ":ver:" + strconv.FormatInt(n, 10) + ":bundle"
}

// CompiledScript holds the script that was compiled from a bundle; see package compiled.
func (k Keys) CompiledScript(t, digest string) string {
	return "cs:script:" + k.tenant(t) + ":" + digest
}

// ActivationMeta holds the record of an activation.
func (k Keys) ActivationMeta(t, id string) string {
	return "cs:act:" + k.tenant(t) + ":" + id + ":meta"
}

// ActivationResult holds a result that is too large for the record.
func (k Keys) ActivationResult(t, id string) string {
	return "cs:act:" + k.tenant(t) + ":" + id + ":result"
}

// ActivationIndex is the set of a function's activations, by start time in milliseconds.
func (k Keys) ActivationIndex(t, ns, fn string) string {
	return "cs:act:" + k.tenant(t) + ":" + ns + ":" + fn + ":index"
}

// FunctionCalls is the hash of the calls of a function on a day, which counts from 1970 in UTC.
func (k Keys) FunctionCalls(t, ns, fn string, day int64) string {
	return string(k.function(t, ns, fn)) + ":calls:" + strconv.FormatInt(day, 10)
}

// FunctionFailure holds the last failure of a function.
func (k Keys) FunctionFailure(t, ns, fn string) string {
	return string(k.function(t, ns, fn)) + ":failure"
}

// LogChunk holds chunk n of an activation's log.
func (k Keys) LogChunk(t, id string, n int) string {
	return "cs:log:" + k.tenant(t) + ":" + id + ":" + strconv.Itoa(n)
}

// LogChunks is the set of the numbers of an activation's log chunks.
func (k Keys) LogChunks(t, id string) string {
	return "cs:log:" + k.tenant(t) + ":" + id + ":chunks"
}

// APIKey holds the record of an API key. It is built from the key's digest alone: a caller
// presents a key before its tenant is known.
func (k Keys) APIKey(digest string) string { return "cs:key:" + digest }

// Sessions is the sorted set of the sessions of the API key whose text has the digest.
func (Keys) Sessions(digest string) string { return "cs:session:" + digest }

// APIKeySet is the set of a tenant's API keys; t may be api.AllTenants.
func (k Keys) APIKeySet(t string) string { return "cs:keys:" + k.tenant(t) }

// Audit is a tenant's stream of audit events; t may be api.AllTenants.
func (k Keys) Audit(t string) string { return "cs:audit:" + k.tenant(t) }

// Refusals is the stream of a tenant's requests that were refused, apart from its audit so
// that they cannot displace a change.
func (k Keys) Refusals(t string) string { return "cs:refusals:" + k.tenant(t) }

// KVKeys builds the keys of a namespace's cs.kv, for package kvstore.
type KVKeys struct{ tenant, namespace string }

// KVKeys returns the key builder of a namespace.
func (s *Store) KVKeys(tenant, namespace string) KVKeys {
	return KVKeys{s.keys.tenant(tenant), namespace}
}

// PrefixKV begins the keys of all values, by which they are scanned.
const PrefixKV = "cs:kv:"

// Value holds the value of a key.
func (k KVKeys) Value(key string) string { return PrefixKV + k.tenant + ":" + k.namespace + ":" + key }

// Index is the set of the keys, in byte order.
func (k KVKeys) Index() string { return "cs:kvindex:" + k.tenant + ":" + k.namespace }

// Expiry is the set of the keys that expire, by the time at which they do.
func (k KVKeys) Expiry() string { return k.Index() + ":expiry" }

// Sizes is the hash of the bytes of each key with its value.
func (k KVKeys) Sizes() string { return k.Index() + ":sizes" }

// Usage is the hash of the counts of the tenant and of its namespaces.
func (k KVKeys) Usage() string { return "cs:kvusage:" + k.tenant }

// ValueOf parses a key below PrefixKV. ok is false for a key of no tenant.
func (s *Store) ValueOf(key string) (tenant, namespace, name string, ok bool) {
	rest, below := strings.CutPrefix(key, PrefixKV)
	tenant, rest, parted := strings.Cut(rest, ":")
	namespace, name, named := strings.Cut(rest, ":")
	bare := strings.TrimSuffix(strings.TrimPrefix(tenant, "{"), "}")
	return bare, namespace, name, below && parted && named && s.keys.tenant(bare) == tenant
}

// QuotaLimits holds the limits of a tenant.
func (k Keys) QuotaLimits(t string) string { return "cs:quota:" + k.tenant(t) + ":limits" }

// QuotaUse is the hash of the amounts that a tenant stores, by quota.
func (k Keys) QuotaUse(t string) string { return "cs:quota:" + k.tenant(t) + ":use" }

// QuotaRates is the hash of the rest of a tenant's rates, by quota.
func (k Keys) QuotaRates(t string) string { return "cs:quota:" + k.tenant(t) + ":rates" }

// QuotaDrafts is the set of a tenant's drafts, each as ns/function/id, by when they expire.
func (k Keys) QuotaDrafts(t string) string { return "cs:quota:" + k.tenant(t) + ":drafts" }

// QuotaDraftSizes is the hash of the bytes of a tenant's drafts.
func (k Keys) QuotaDraftSizes(t string) string { return "cs:quota:" + k.tenant(t) + ":draftsizes" }

// UsageDay is the hash of the use of a tenant's functions on a day, from 1970 in UTC.
func (k Keys) UsageDay(t string, day int64) string {
	return "cs:usage:" + k.tenant(t) + ":" + strconv.FormatInt(day, 10)
}

func (k Keys) schedule(t, ns, name string) scheduleKeys {
	return scheduleKeys("cs:schedule:" + k.tenant(t) + ":" + ns + ":" + name)
}

// ScheduleIndex is the set of a namespace's schedules.
func (k Keys) ScheduleIndex(t, ns string) string {
	return "cs:schedule:" + k.tenant(t) + ":" + ns + ":index"
}

// scheduleDue is the set of a tenant's schedules, each as ns/name, by their next tick.
func (k Keys) scheduleDue(t string) string { return "cs:schedule:" + k.tenant(t) + ":due" }

// scheduleKeys is the prefix of a schedule's keys.
type scheduleKeys string

func (s scheduleKeys) meta() string     { return string(s) + ":meta" }
func (s scheduleKeys) state() string    { return string(s) + ":state" }
func (s scheduleKeys) inflight() string { return string(s) + ":inflight" }

// SchedulePath names a schedule of a namespace.
type SchedulePath struct{ Tenant, Namespace, Name string }

// Member is the schedule's member in the tenant's due set.
func (p SchedulePath) Member() string { return p.Namespace + "/" + p.Name }

// ScheduleKeys returns the keys of the hash of a schedule's state and of the set of its
// jobs in flight.
func (s *Store) ScheduleKeys(p SchedulePath) (state, inFlight string) {
	k := s.keys.schedule(p.Tenant, p.Namespace, p.Name)
	return k.state(), k.inflight()
}

// ScheduleMetaKey is the record of a schedule.
func (s *Store) ScheduleMetaKey(p SchedulePath) string {
	return s.keys.schedule(p.Tenant, p.Namespace, p.Name).meta()
}

// ScheduleDueKey is the set of a tenant's schedules, each as ns/name, by their next tick.
func (s *Store) ScheduleDueKey(tenant string) string { return s.keys.scheduleDue(tenant) }

// BindingPath names a worker binding of a namespace.
type BindingPath struct{ Tenant, Namespace, Name string }

// Binding begins the keys of a worker binding.
func (k Keys) Binding(p BindingPath) BindingKeys {
	return BindingKeys("cs:cadence:" + k.tenant(p.Tenant) + ":" + p.Namespace + ":worker:" + p.Name)
}

// BindingIndex is the set of a namespace's worker bindings.
func (k Keys) BindingIndex(t, ns string) string {
	return "cs:cadence:" + k.tenant(t) + ":" + ns + ":workers:index"
}

// Triggers is the hash of a namespace's queue triggers, by queue.
func (k Keys) Triggers(t, ns string) string {
	return "cs:trigger:" + k.tenant(t) + ":" + ns + ":queues"
}

// TriggerSlots is the set of the slots that a queue's trigger holds, each by the time at which it
// ends.
func (k Keys) TriggerSlots(t, ns, queue string) string {
	return "cs:trigger:" + k.tenant(t) + ":" + ns + ":slots:" + queue
}

// Domain holds a tenant's claim to a custom domain. A domain has a dot and no colon, so no claim is
// called index.
func (k Keys) Domain(t, domain string) string { return "cs:domain:" + k.tenant(t) + ":" + domain }

// DomainIndex is the set of the custom domains that a tenant claims.
func (k Keys) DomainIndex(t string) string { return "cs:domain:" + k.tenant(t) + ":index" }

// Providers holds a part of what package providers keeps of a tenant.
func (k Keys) Providers(t, part string) string { return "cs:ai:" + k.tenant(t) + ":" + part }

// Webhooks is the hash of a tenant's webhooks, by name.
func (k Keys) Webhooks(t string) string { return "cs:webhook:" + k.tenant(t) + ":records" }

// WebhookLease names the replica that delivers a tenant's webhooks.
func (k Keys) WebhookLease(t string) string { return "cs:webhook:" + k.tenant(t) + ":lease" }

// Webhook begins the keys of the webhook with that id, which has hyphens: no id is called records
// or lease.
func (k Keys) Webhook(t, id string) WebhookKeys {
	return WebhookKeys("cs:webhook:" + k.tenant(t) + ":" + id)
}

// WebhookKeys is the prefix of the keys of a webhook's deliveries.
type WebhookKeys string

// State is the hash of the webhook's position in the log of events, and of its last attempt.
func (w WebhookKeys) State() string { return string(w) + ":state" }

// Pending is the hash of the deliveries that have not ended, by their members of Due.
func (w WebhookKeys) Pending() string { return string(w) + ":pending" }

// Due is the set of the deliveries that have not ended, by the time of their next attempt.
func (w WebhookKeys) Due() string { return string(w) + ":due" }

// Log is the stream of the attempts.
func (w WebhookKeys) Log() string { return string(w) + ":log" }

// BindingKeys is the prefix of a worker binding's keys.
type BindingKeys string

// Meta holds the record of the binding.
func (b BindingKeys) Meta() string { return string(b) + ":meta" }

// Status is the hash of the reports of the replicas.
func (b BindingKeys) Status() string { return string(b) + ":status" }

// SecretKeys builds the keys of a namespace's secrets, for package secrets.
type SecretKeys struct{ tenant, namespace string }

// SecretKeys returns the key builder of a namespace.
func (s *Store) SecretKeys(tenant, namespace string) SecretKeys {
	return SecretKeys{s.keys.tenant(tenant), namespace}
}

// Record holds a secret.
func (k SecretKeys) Record(name string) string {
	return "cs:secret:" + k.tenant + ":" + k.namespace + ":" + name
}

// Index is the set of the namespace's secrets. It is no key of Record's: secrets may be
// called index.
func (k SecretKeys) Index() string { return "cs:secrets:" + k.tenant + ":" + k.namespace }

// Floor is the highest version of the secrets that were deleted.
func (k SecretKeys) Floor() string { return k.Index() + ":floor" }

// DocumentPath names a namespace of documents.
type DocumentPath struct{ Tenant, Install, Namespace string }

// Documents begins the keys of a namespace of documents.
func (k Keys) Documents(p DocumentPath) DocumentKeys {
	return DocumentKeys("cs:doc:" + k.tenant(p.Tenant) + ":" + p.Install + ":" + p.Namespace)
}

// DocumentKeys is the prefix of the keys of a namespace of documents.
type DocumentKeys string

// Records is the hash of the documents, by key.
func (d DocumentKeys) Records() string { return string(d) + ":records" }

// Index is the set of the keys of the documents, in byte order.
func (d DocumentKeys) Index() string { return string(d) + ":index" }

// Expiry is the set of the documents that expire, by the time at which they do.
func (d DocumentKeys) Expiry() string { return string(d) + ":expiry" }

// Changes is the stream of the changes.
func (d DocumentKeys) Changes() string { return string(d) + ":changes" }

// Schema holds the digest of the schema and the schema.
func (d DocumentKeys) Schema() string { return string(d) + ":schema" }

// The keys of an install have one segment more than those of its tenant, and one less than
// those of a namespace. So no install and no namespace can be mistaken for another key, even
// one that is called usage or installs.

// DocumentInstall begins the keys of an install.
func (k Keys) DocumentInstall(t, install string) string {
	return "cs:doc:" + k.tenant(t) + ":" + install
}

// DocumentUsage is the hash of the counts of an install's namespaces.
func (k Keys) DocumentUsage(t, install string) string {
	return k.DocumentInstall(t, install) + ":usage"
}

// DocumentNamespaces is the set of an install's namespaces.
func (k Keys) DocumentNamespaces(t, install string) string {
	return k.DocumentInstall(t, install) + ":namespaces"
}

// DocumentInstallMeta holds the registration of an install.
func (k Keys) DocumentInstallMeta(t, install string) string {
	return k.DocumentInstall(t, install) + ":meta"
}

// DocumentTenantUsage is the hash of the counts of a tenant.
func (k Keys) DocumentTenantUsage(t string) string { return "cs:doc:" + k.tenant(t) + ":usage" }

// DocumentInstalls is the set of a tenant's installs.
func (k Keys) DocumentInstalls(t string) string { return "cs:doc:" + k.tenant(t) + ":installs" }

// DocumentNames is the set of the namespaces that a tenant has ever had, each as install/ns.
func (k Keys) DocumentNames(t string) string { return "cs:doc:" + k.tenant(t) + ":names" }

// DocumentExpiring is the set of a tenant's namespaces, each as install/ns, by their soonest expiry.
func (k Keys) DocumentExpiring(t string) string { return "cs:doc:" + k.tenant(t) + ":expiring" }

// taskRecords begins the keys of all tasks.
const taskRecords = "gbe:state:tasks:"

// taskPrefix begins the keys of a tenant's tasks of a type, or of all types where taskType is
// "". Tenant and type share one segment, as in gbe:state:tasks:t_acme01.resize:42: the layout
// has one segment for a task type, and with the tenant in it no tenant can name another's
// task.
func (k Keys) taskPrefix(t, taskType string) string {
	if taskType == "" {
		return taskRecords + k.tenant(t) + "."
	}
	return taskRecords + k.tenant(t) + "." + taskType + ":"
}

// TaskIndex is the set of the keys of a tenant's tasks that have not ended, by updated_at.
func (k Keys) TaskIndex(t string) string { return "gbe:idx:tasks:" + k.tenant(t) + ":by_updated" }

// taskEvents is a stream, such as gbe:tasks:t_acme01.resize:progress.
func (k Keys) taskEvents(t, taskType, kind string) string {
	return "gbe:tasks:" + k.tenant(t) + "." + taskType + ":" + kind
}

// taskIndexOf is the TaskIndex of the one tenant whose tasks' keys can begin with text, a
// complete key or a part of one. It is "" where text ends before the tenant does, as in
// gbe:state:tasks:t_ac, or is not the beginning of a task's key.
func (k Keys) taskIndexOf(text string) string {
	rest, _ := strings.CutPrefix(text, taskRecords)
	tenant, _, ended := strings.Cut(rest, ".")
	if k.hashTags {
		tenant = strings.TrimSuffix(strings.TrimPrefix(tenant, "{"), "}")
	}
	if !ended || tenant == "" || !strings.HasPrefix(text, k.taskPrefix(tenant, "")) {
		return ""
	}
	return k.TaskIndex(tenant)
}

// JobKeys builds the keys of a tenant's jobs and queues, for package queue.
type JobKeys struct{ tenant string }

// JobKeys returns the key builder of tenant.
func (s *Store) JobKeys(tenant string) JobKeys { return JobKeys{s.keys.tenant(tenant)} }

// Spec holds the specification that a job was created with.
func (k JobKeys) Spec(id string) string { return "cs:job:" + k.tenant + ":" + id + ":spec" }

// Run holds the changing part of a job, as one string. A job exists while its Run does.
func (k JobKeys) Run(id string) string { return "cs:job:" + k.tenant + ":" + id + ":run" }

// Meta is the hash of the fields that few jobs have: a checkpoint, a result, the reason
// of a hold.
func (k JobKeys) Meta(id string) string { return "cs:job:" + k.tenant + ":" + id + ":meta" }

// Errors is the list of a job's failed attempts.
func (k JobKeys) Errors(id string) string { return "cs:job:" + k.tenant + ":" + id + ":errors" }

// Ledger holds what a job has spent on models, and its iteration; see lua/include/ledger.lua.
func (k JobKeys) Ledger(id string) string { return "cs:job:" + k.tenant + ":" + id + ":ledger" }

// Steps is the hash of the steps of a job's run; see package queue/runs.
func (k JobKeys) Steps(id string) string { return "cs:job:" + k.tenant + ":" + id + ":steps" }

// Waiters is the set of the runs of a namespace that wait for an event, by the end of their wait.
func (k JobKeys) Waiters(ns, event string) string {
	return "cs:waiters:" + k.tenant + ":" + ns + ":" + event
}

// Dependents is the set of the jobs that wait for a job.
func (k JobKeys) Dependents(id string) string { return "cs:job:" + k.tenant + ":" + id + ":dependents" }

// Spending is the hash of a tenant's sums of a day, counted from 1970 in UTC; see storage/spending.
func (k JobKeys) Spending(day int64) string {
	return "cs:spending:" + k.tenant + ":" + strconv.FormatInt(day, 10)
}

// Prices is the hash of a tenant's prices of models; see storage/spending.
func (k JobKeys) Prices() string { return "cs:prices:" + k.tenant }

// Budgets is the hash of a tenant's budgets, HeldBy the jobs that one holds; see storage/budgets.
func (k JobKeys) Budgets() string { return "cs:budgets:" + k.tenant }

// Approvals is the set of a tenant's approvals, ApprovalPolicies the hash of its policies, Delegations that
// of delegated votes, and ApprovalLinks that of links for votes; see storage/approvals.
func (k JobKeys) Approvals() string { return "cs:approvals:" + k.tenant }

// ApprovalPolicies is documented at Approvals.
func (k JobKeys) ApprovalPolicies() string { return k.Approvals() + ":policies" }

// Delegations is documented at Approvals.
func (k JobKeys) Delegations() string { return k.Approvals() + ":delegations" }

// ApprovalLinks is documented at Approvals.
func (k JobKeys) ApprovalLinks() string { return k.Approvals() + ":links" }

// HeldBy is documented at Budgets.
func (k JobKeys) HeldBy(id string) string { return k.Budgets() + ":" + id + ":held" }

// Events is the stream of a tenant's events, see package storage/events.
func (k JobKeys) Events() string { return "cs:events:" + k.tenant }

// Queues is the set of a tenant's queues, each as ns/q.
func (k JobKeys) Queues() string { return "cs:queue:" + k.tenant + ":index" }

// Queue begins the keys of a queue.
func (k JobKeys) Queue(ns, q string) QueueKeys {
	return QueueKeys("cs:queue:" + k.tenant + ":" + ns + ":" + q)
}

// Unique holds the job that has a unique key.
func (k JobKeys) Unique(ns, q, key string) string {
	return "cs:uniq:" + k.tenant + ":" + ns + ":" + q + ":" + key
}

// Idempotency holds the digest of an enqueue's request.
func (k JobKeys) Idempotency(key string) string { return "cs:idem:" + k.tenant + ":" + key }

// Batch begins the keys of a batch: :meta, :jobs, :succeeded, :failed.
func (k JobKeys) Batch(id string) string { return "cs:batch:" + k.tenant + ":" + id }

// Worker is the record of a process that fetches.
func (k JobKeys) Worker(id string) string { return "cs:worker:" + k.tenant + ":" + id }

// Batches lists the batches of a namespace, all with the score 0, so in the order of their ids.
// BatchEnds has those that have ended, by the time from which their records have expired.
func (k JobKeys) Batches(namespace string) string { return "cs:batches:" + k.tenant + ":" + namespace }

// BatchEnds is documented at Batches.
func (k JobKeys) BatchEnds(namespace string) string { return k.Batches(namespace) + ":ends" }

// WorkerQueues is the set of the queues that a process fetches from, as ns/q, by the time of
// the last fetch. It is no key of Worker's: workers choose their ids.
func (k JobKeys) WorkerQueues(id string) string { return "cs:workerqueues:" + k.tenant + ":" + id }

// Workers is the set of a tenant's workers, by their last heartbeat. It is no key
// of Worker's: workers choose their ids.
func (k JobKeys) Workers() string { return "cs:workers:" + k.tenant }

// QueueKeys is the prefix of a queue's keys.
type QueueKeys string

// Set is the index of the queue's jobs of one state; of pending jobs, of those with
// normal priority (see Pending).
func (q QueueKeys) Set(state string) string { return string(q) + ":" + state }

// Sets are the indexes of the queue's jobs of one state, in the order in which their
// turn comes: one, and for pending jobs one for each priority.
func (q QueueKeys) Sets(state api.JobState) []string {
	if state != api.JobPending {
		return []string{q.Set(string(state))}
	}
	return []string{
		q.Pending(api.PriorityCritical), q.Pending(api.PriorityHigh), q.Pending(api.PriorityNormal), q.Pending(api.PriorityLow),
	}
}

// Pending is the index of the queue's pending jobs of one priority. Each has a set of
// its own: on KVRocks a read of an empty range walks over every entry deleted behind
// it, up to the next one in the same set.
func (q QueueKeys) Pending(p api.Priority) string {
	if p == api.PriorityNormal {
		return string(q) + ":pending"
	}
	return string(q) + ":pending:" + string(p)
}

// Config is the hash of the queue's configuration.
func (q QueueKeys) Config() string { return string(q) + ":config" }

// Cursor is the hash of the scores from which pending jobs are read.
func (q QueueKeys) Cursor() string { return string(q) + ":cursor" }

// Rate is the hash of the jobs that have begun in the current rate window.
func (q QueueKeys) Rate() string { return string(q) + ":rate" }

// Expiry is the set of the queue's jobs by the time at which they expire.
func (q QueueKeys) Expiry() string { return string(q) + ":expiry" }

// After is the set of the queue's jobs whose end has consequences that are still to be
// written: an outcome to deliver, or dependents to release.
func (q QueueKeys) After() string { return string(q) + ":after" }

// The beginnings of the keys of all jobs and of all batches, by which they are scanned.
const (
	PrefixJobs    = "cs:job:"
	PrefixBatches = "cs:batch:"
)

// RecordOf parses a key below PrefixJobs or PrefixBatches. It returns the tenant and the id
// of the job or batch if the key holds its record: :run or :meta of a job, :meta of a batch.
// ok is false for every other key, such as :spec. For cs:job:{t_acme01}:j1:run on a cluster
// it returns t_acme01 and j1.
func (s *Store) RecordOf(prefix, key string) (tenant, id string, ok bool) {
	rest, below := strings.CutPrefix(key, prefix)
	rest, record := strings.CutSuffix(rest, ":meta")
	if prefix == PrefixJobs && !record {
		rest, record = strings.CutSuffix(rest, ":run")
	}
	tenant, id, parted := strings.Cut(rest, ":")
	bare := strings.TrimSuffix(strings.TrimPrefix(tenant, "{"), "}")
	return bare, id, below && record && parted && s.keys.tenant(bare) == tenant
}

// DueShards is the number of keys over which the members of the due set are spread, and
// those of the ready set. Changing it would strand the members of other shards.
const DueShards = 16

// KeyDue is a shard of the due set: queues, and tenants with schedules, by when they are due (MarkDue).
func KeyDue(shard int) string { return "cs:due:" + strconv.Itoa(shard) }

// KeyReady is a shard of the ready set: the fn. queues by the moment from which a fetch may find work.
func KeyReady(shard int) string { return "cs:ready:" + strconv.Itoa(shard) }

// ChannelWake is the pub/sub channel of package queue: t/ns/q of queues with work, and notices of due work.
const ChannelWake = "cs:wake"

// KeyBulkDue is the sorted set of the bulk operations of all tenants that run; see package queue/bulk.
const KeyBulkDue = "cs:bulk:due"

// Bulk holds a part of what package queue/bulk keeps of a tenant.
func (k Keys) Bulk(t, part string) string { return "cs:bulk:" + k.tenant(t) + ":" + part }
