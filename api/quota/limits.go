// Package quota names the quotas of tenants, and has the records of their limits and their use.
// The names of the records are those of the OpenAPI document. The quota that an error reports
// is api.QuotaUse.
package quota

import (
	"slices"
	"time"

	"github.com/codesous/sous/api"
)

// Name names a quantity that a tenant may use up to a limit. Its text is the name of the
// field of TenantLimits, and the unit of an api.QuotaUse.
type Name string

// The quotas. Those before Calls are amounts of what a tenant stores, the others are
// rates.
const (
	Namespaces    Name = "namespaces"
	Functions     Name = "functions"
	Versions      Name = "versions"
	Aliases       Name = "aliases"
	Drafts        Name = "drafts"
	DraftBytes    Name = "draft_bytes"
	BundleBytes   Name = "bundle_bytes"
	Queues        Name = "queues"
	Jobs          Name = "jobs"
	Batches       Name = "batches"
	Tasks         Name = "tasks"
	Triggers      Name = "triggers"
	Bindings      Name = "bindings"
	Schedules     Name = "schedules"
	ScheduleBytes Name = "schedule_bytes_per_minute"
	DocNamespaces Name = "document_namespaces"
	Secrets       Name = "secrets"
	Domains       Name = "domains"
	Keys          Name = "keys"
	KVKeys        Name = "kv_keys"
	KVBytes       Name = "kv_bytes"

	Calls       Name = "calls_per_second"
	CPU         Name = "cpu_seconds_per_minute"
	Memory      Name = "gb_seconds_per_minute"
	Egress      Name = "egress_bytes_per_minute"
	EgressDay   Name = "egress_bytes_per_day"
	RecordBytes Name = "record_bytes_per_day"
	JobBytes    Name = "job_bytes_per_day"
)

// Unlimited is the value of a limit that does not apply.
const Unlimited = -1

// MaxTenantLimit is the largest value of a limit. Scripts add such numbers exactly.
const MaxTenantLimit = 1 << 52

// MaxTenantWeight is the largest weight of a tenant.
const MaxTenantWeight = 1000

// TenantLimits are the limits of one tenant. A limit of 0 is that of the server, and
// Unlimited none. Counts are of what exists at a time, bytes are sums, and rates are sums of
// all replicas.
type TenantLimits struct {
	Namespaces    int64 `json:"namespaces,omitempty" doc:"namespaces that have ever had a record"`
	Functions     int64 `json:"functions,omitempty" doc:"functions, with those that were deleted: their versions are kept"`
	Versions      int64 `json:"versions,omitempty" doc:"published versions of all functions"`
	Aliases       int64 `json:"aliases,omitempty" doc:"aliases of all functions"`
	Drafts        int64 `json:"drafts,omitempty" doc:"drafts that were neither published nor have expired"`
	DraftBytes    int64 `json:"draft_bytes,omitempty" doc:"stored bytes of these drafts"`
	BundleBytes   int64 `json:"bundle_bytes,omitempty" doc:"bytes of the bundles of all versions"`
	Queues        int64 `json:"queues,omitempty" doc:"queues"`
	Jobs          int64 `json:"jobs,omitempty" doc:"jobs that have not ended"`
	Batches       int64 `json:"batches,omitempty" doc:"batches"`
	Tasks         int64 `json:"tasks,omitempty" doc:"tasks that have not ended"`
	Triggers      int64 `json:"triggers,omitempty" doc:"queue triggers"`
	Bindings      int64 `json:"bindings,omitempty" doc:"Cadence worker bindings"`
	Schedules     int64 `json:"schedules,omitempty" doc:"schedules"`
	ScheduleBytes int64 `json:"schedule_bytes_per_minute,omitempty" doc:"bytes that all schedules together write in a minute: the size of each, times how often it fires"`
	DocNamespaces int64 `json:"document_namespaces,omitempty" doc:"namespaces of documents that have ever had a document or a schema"`
	Secrets       int64 `json:"secrets,omitempty" doc:"secrets"`
	Domains       int64 `json:"domains,omitempty" doc:"custom domains, verified or not"`
	Keys          int64 `json:"keys,omitempty" doc:"API keys that are neither revoked nor forgotten"`
	KVKeys        int64 `json:"kv_keys,omitempty" doc:"keys of cs.kv"`
	KVBytes       int64 `json:"kv_bytes,omitempty" doc:"bytes of the keys and values of cs.kv"`

	Calls       int64 `json:"calls_per_second,omitempty" doc:"calls of functions a second, asynchronous ones included"`
	CPU         int64 `json:"cpu_seconds_per_minute,omitempty" doc:"CPU seconds of functions a minute"`
	Memory      int64 `json:"gb_seconds_per_minute,omitempty" doc:"GB-seconds a minute: the memory limit of each call times its duration"`
	Egress      int64 `json:"egress_bytes_per_minute,omitempty" doc:"bytes that functions send and receive by fetch and WebSocket a minute"`
	EgressDay   int64 `json:"egress_bytes_per_day,omitempty" doc:"the same for a day in UTC"`
	RecordBytes int64 `json:"record_bytes_per_day,omitempty" doc:"bytes of log lines, results and errors stored for activations a day in UTC; beyond it logs are not stored, and calls with an idempotency key are refused"`
	JobBytes    int64 `json:"job_bytes_per_day,omitempty" doc:"bytes of jobs, results, checkpoints and errors that are stored a day in UTC"`

	Weight       int64 `json:"weight,omitempty" doc:"share of sandboxes while several tenants wait for one, 1 to 1,000"`
	MaxSandboxes int64 `json:"max_sandboxes,omitempty" doc:"sandboxes that the tenant may use at a time on a replica"`
	MaxMemoryMB  int64 `json:"max_sandbox_memory_mb,omitempty" doc:"MiB that its sandboxes may use together on a replica"`
}

// limitField is a field of TenantLimits.
type limitField struct {
	name string
	of   func(*TenantLimits) *int64
}

// limitFields lists the fields in the order of the record.
var limitFields = []limitField{
	{string(Namespaces), func(l *TenantLimits) *int64 { return &l.Namespaces }},
	{string(Functions), func(l *TenantLimits) *int64 { return &l.Functions }},
	{string(Versions), func(l *TenantLimits) *int64 { return &l.Versions }},
	{string(Aliases), func(l *TenantLimits) *int64 { return &l.Aliases }},
	{string(Drafts), func(l *TenantLimits) *int64 { return &l.Drafts }},
	{string(DraftBytes), func(l *TenantLimits) *int64 { return &l.DraftBytes }},
	{string(BundleBytes), func(l *TenantLimits) *int64 { return &l.BundleBytes }},
	{string(Queues), func(l *TenantLimits) *int64 { return &l.Queues }},
	{string(Jobs), func(l *TenantLimits) *int64 { return &l.Jobs }},
	{string(Batches), func(l *TenantLimits) *int64 { return &l.Batches }},
	{string(Tasks), func(l *TenantLimits) *int64 { return &l.Tasks }},
	{string(Triggers), func(l *TenantLimits) *int64 { return &l.Triggers }},
	{string(Bindings), func(l *TenantLimits) *int64 { return &l.Bindings }},
	{string(Schedules), func(l *TenantLimits) *int64 { return &l.Schedules }},
	{string(ScheduleBytes), func(l *TenantLimits) *int64 { return &l.ScheduleBytes }},
	{string(DocNamespaces), func(l *TenantLimits) *int64 { return &l.DocNamespaces }},
	{string(Secrets), func(l *TenantLimits) *int64 { return &l.Secrets }},
	{string(Domains), func(l *TenantLimits) *int64 { return &l.Domains }},
	{string(Keys), func(l *TenantLimits) *int64 { return &l.Keys }},
	{string(KVKeys), func(l *TenantLimits) *int64 { return &l.KVKeys }},
	{string(KVBytes), func(l *TenantLimits) *int64 { return &l.KVBytes }},
	{string(Calls), func(l *TenantLimits) *int64 { return &l.Calls }},
	{string(CPU), func(l *TenantLimits) *int64 { return &l.CPU }},
	{string(Memory), func(l *TenantLimits) *int64 { return &l.Memory }},
	{string(Egress), func(l *TenantLimits) *int64 { return &l.Egress }},
	{string(EgressDay), func(l *TenantLimits) *int64 { return &l.EgressDay }},
	{string(RecordBytes), func(l *TenantLimits) *int64 { return &l.RecordBytes }},
	{string(JobBytes), func(l *TenantLimits) *int64 { return &l.JobBytes }},
	{"weight", func(l *TenantLimits) *int64 { return &l.Weight }},
	{"max_sandboxes", func(l *TenantLimits) *int64 { return &l.MaxSandboxes }},
	{"max_sandbox_memory_mb", func(l *TenantLimits) *int64 { return &l.MaxMemoryMB }},
}

// Stored lists the quotas of amounts that a tenant stores, in the order of TenantLimits.
func Stored() []Name {
	return []Name{
		Namespaces, Functions, Versions, Aliases, Drafts, DraftBytes, BundleBytes, Queues, Jobs,
		Batches, Tasks, Triggers, Bindings, Schedules, ScheduleBytes, DocNamespaces, Secrets, Domains, Keys, KVKeys, KVBytes,
	}
}

// Rates lists the quotas of rates, in the order of TenantLimits.
func Rates() []Name {
	return []Name{Calls, CPU, Memory, Egress, EgressDay, RecordBytes, JobBytes}
}

// Period returns the time to which the limit of a rate applies, 0 for a stored amount.
func (q Name) Period() time.Duration {
	switch q {
	case Calls:
		return time.Second
	case CPU, Memory, Egress:
		return time.Minute
	case EgressDay, RecordBytes, JobBytes:
		return 24 * time.Hour
	}
	return 0
}

// TenantLimitNames returns the names of the limits, in the order of the record.
func TenantLimitNames() []string {
	names := make([]string, len(limitFields))
	for i, f := range limitFields {
		names[i] = f.name
	}
	return names
}

// Of returns the limit of q, 0 for a quota that does not exist.
func (l TenantLimits) Of(q Name) int64 {
	n, _ := l.Get(string(q))
	return n
}

// Get returns the limit with the given name. found is false if there is none.
func (l TenantLimits) Get(name string) (n int64, found bool) {
	i := slices.IndexFunc(limitFields, func(f limitField) bool { return f.name == name })
	if i < 0 {
		return 0, false
	}
	return *limitFields[i].of(&l), true
}

// Set sets the limit with the given name. It reports whether there is one.
func (l *TenantLimits) Set(name string, n int64) bool {
	i := slices.IndexFunc(limitFields, func(f limitField) bool { return f.name == name })
	if i < 0 {
		return false
	}
	*limitFields[i].of(l) = n
	return true
}

// Or returns l with the limits of defaults in the place of zeros.
func (l TenantLimits) Or(defaults TenantLimits) TenantLimits {
	for _, f := range limitFields {
		if n := f.of(&l); *n == 0 {
			*n = *f.of(&defaults)
		}
	}
	return l
}

// Validate returns CodeInvalid with the fields that are out of range.
func (l TenantLimits) Validate() error {
	var fields []api.FieldError
	for _, f := range limitFields {
		if n := *f.of(&l); n < Unlimited || n > MaxTenantLimit {
			fields = append(fields, api.FieldError{Path: f.name, Message: "must be from 1 to " + api.CountText(MaxTenantLimit) + ", 0 for the limit of the server, or -1 for none"})
		}
	}
	if l.Weight < 0 || l.Weight > MaxTenantWeight {
		fields = append(fields, api.FieldError{Path: "weight", Message: "must be from 1 to " + api.CountText(MaxTenantWeight) + ", or 0 for the weight of the server"})
	}
	if len(fields) == 0 {
		return nil
	}
	return api.Errorf(api.CodeInvalid, "%s %s", fields[0].Path, fields[0].Message).WithFields(fields...)
}

// DefaultTenantLimits returns the limits of a server that configures none. They stop a tenant
// that fills the store and are far above normal use.
func DefaultTenantLimits() TenantLimits {
	return TenantLimits{
		Namespaces: 10_000, Functions: 50_000, Versions: 500_000, Aliases: 100_000,
		Drafts: 2_000, DraftBytes: 4 << 30, BundleBytes: 20 << 30,
		Queues: 50_000, Jobs: 5_000_000, Batches: 200_000, Tasks: 1_000_000, Triggers: 5_000, Bindings: 200,
		Schedules: 100_000, ScheduleBytes: 60 << 20, DocNamespaces: 10_000, Secrets: 50_000, Domains: 50, Keys: 10_000,
		KVKeys: 5_000_000, KVBytes: 1 << 30,
		Calls: Unlimited, CPU: Unlimited, Memory: Unlimited, Egress: Unlimited, EgressDay: Unlimited,
		RecordBytes: 20 << 30, JobBytes: 200 << 30,
		Weight: 100, MaxSandboxes: Unlimited, MaxMemoryMB: Unlimited,
	}
}

// MilliGBSeconds returns what a call with a memory limit in MiB uses in a time, in thousandths of
// GB-seconds; a GB is 1,000,000,000 bytes.
func MilliGBSeconds(memoryMB int, ms int64) int64 {
	return int64(memoryMB) << 20 * ms / 1_000_000_000
}

// Amount is an amount of one quota.
type Amount struct {
	Quota  Name
	Amount int64
}

// Exceeded returns the CodeTenantQuota of a stored quota.
func Exceeded(q Name, limit, used int64) *api.Error {
	e := api.Errorf(api.CodeTenantQuota, "the tenant's limit of %s %s is reached: delete some, or ask the administrator for a higher limit", api.CountText(limit), q)
	e.Quota = &api.QuotaUse{Scope: "tenant", Unit: string(q), Limit: limit, Used: used}
	return e
}

// TenantLimitsStatus are the limits of a tenant in force, and those of them that are set.
type TenantLimitsStatus struct {
	Limits TenantLimits `json:"limits" doc:"the limits in force; -1 is none"`
	Set    TenantLimits `json:"set" doc:"those that were set for the tenant; the others are those of the server"`
}
