package controlplane

import (
	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane/jobs"
	"github.com/codesous/sous/controlplane/rest"
)

// Limits lists every limit that callers can meet. Sizes are in bytes, times in
// milliseconds, unless the name has another unit. Clients read it from GET /v1/limits
// instead of copying numbers. Each value is a constant of the package that enforces it,
// most of them of api, or a setting of the server that answers (retention); quotas of
// documents are not listed here but with the resource.
type Limits struct {
	Version    VersionLimits    `json:"version"`
	Bundle     BundleLimits     `json:"bundle"`
	Request    RequestLimits    `json:"request"`
	Activation ActivationLimits `json:"activation"`
	Job        JobLimits        `json:"job"`
	Queue      QueueLimits      `json:"queue"`
	Bulk       BulkLimits       `json:"bulk"`
	Agent      AgentLimits      `json:"agent"`
	Budget     BudgetLimits     `json:"budget"`
	Schedule   ScheduleLimits   `json:"schedule"`
	Task       TaskLimits       `json:"task"`
	Cadence    CadenceLimits    `json:"cadence"`
	Secret     SecretLimits     `json:"secret"`
	Document   DocumentLimits   `json:"document"`
	Invoke     InvokeLimits     `json:"invoke"`
	Page       PageLimits       `json:"page"`
}

// Bound is the range of a setting, both ends included, and its default. A default of 0
// means that the setting has none:
//
//	"timeout_ms":    {"min": 1, "max": 900000, "default": 3000}
//	"every_seconds": {"min": 1, "max": …, "default": 0}
type Bound struct {
	Min     int64 `json:"min"`
	Max     int64 `json:"max"`
	Default int64 `json:"default"`
}

// VersionLimits bound how a version runs.
type VersionLimits struct {
	// TimeoutMS is configurable up to its maximum; under /v1/web a call ends after
	// WebTimeoutMaxMS all the same.
	TimeoutMS       Bound `json:"timeout_ms"`
	WebTimeoutMaxMS int64 `json:"web_timeout_max_ms"`
	CPUMS           Bound `json:"cpu_ms"`
	MemoryMB        Bound `json:"memory_mb"`
	MaxConcurrency  Bound `json:"max_concurrency"`
	EnvEntries      int   `json:"env_entries"`
	EnvBytes        int   `json:"env_bytes"`
	RecordMS        Bound `json:"record_retention_ms"` // the default is that of the caller's tenant
}

// BundleLimits bound uploads. Bytes is the size of the tar; DraftJSONBytes is that of an
// upload in JSON, which is larger because of its base64.
type BundleLimits struct {
	Bytes          int   `json:"bytes"`
	Files          int   `json:"files"`
	PathBytes      int   `json:"path_bytes"`
	DraftJSONBytes int   `json:"draft_json_bytes"`
	DraftTTLMS     int64 `json:"draft_ttl_ms"`
}

// RequestLimits bound requests. EventBytes is for invocations and function endpoints,
// OtherBodyBytes for all bodies that have no limit of their own.
type RequestLimits struct {
	EventBytes          int `json:"event_bytes"`
	OtherBodyBytes      int `json:"other_body_bytes"`
	HeaderBytes         int `json:"header_bytes"`
	QueryBytes          int `json:"query_bytes"`
	IdempotencyKeyBytes int `json:"idempotency_key_bytes"`
}

// ActivationLimits bound the results and the records of activations. A result has at most
// ResultBytes for the caller; of one larger than StoredResultBytes the record keeps a
// part.
type ActivationLimits struct {
	ResultBytes       int   `json:"result_bytes"`
	StoredResultBytes int   `json:"stored_result_bytes"`
	ErrorMessageBytes int   `json:"error_message_bytes"`
	ErrorStackBytes   int   `json:"error_stack_bytes"`
	LogBytes          int   `json:"log_bytes"`
	SentBytes         int   `json:"sent_bytes"` // that a function passes to the server, but a streamed answer
	TTLMS             int64 `json:"ttl_ms"`     // of the caller's tenant; a version may have another
}

// JobLimits bound jobs, and calls about them.
type JobLimits struct {
	PayloadBytes       int   `json:"payload_bytes"`
	ResultBytes        int   `json:"result_bytes"`
	CheckpointBytes    int   `json:"checkpoint_bytes"`
	ErrorBytes         int   `json:"error_bytes"`
	StackBytes         int   `json:"stack_bytes"`
	EnqueueJobs        int   `json:"enqueue_jobs"`
	EnqueueBodyBytes   int   `json:"enqueue_body_bytes"`
	EnqueueSchemas     int   `json:"enqueue_schemas"`
	FetchJobs          int   `json:"fetch_jobs"`
	FetchQueues        int   `json:"fetch_queues"`
	FetchWaitMS        int64 `json:"fetch_wait_ms"`
	SettleJobs         int   `json:"settle_jobs"`
	AckBodyBytes       int   `json:"ack_body_bytes"`
	HeartbeatBodyBytes int   `json:"heartbeat_body_bytes"`
	LeaseMS            Bound `json:"lease_ms"`
	MaxAttempts        Bound `json:"max_attempts"`
	BaseDelayMS        Bound `json:"base_delay_ms"`
	MaxDelayMS         Bound `json:"max_delay_ms"`
	UniqueTTLMS        Bound `json:"unique_ttl_ms"`
	UniqueKeyBytes     int   `json:"unique_key_bytes"`
	Tags               int   `json:"tags"`
	TagBytes           int   `json:"tag_bytes"`
	Dependencies       int   `json:"dependencies"`
	ChainSteps         int   `json:"chain_steps"`
	RetentionMS        int64 `json:"retention_ms"` // of the caller's tenant; a queue may have another
	OpenBatchMS        int64 `json:"open_batch_retention_ms"`
}

// QueueLimits bound how a queue may be configured.
type QueueLimits struct {
	MaxConcurrency int   `json:"max_concurrency"`
	RateLimit      int   `json:"rate_limit"`
	RateWindowMS   Bound `json:"rate_window_ms"`
	RetentionMS    Bound `json:"retention_ms"` // the default is that of the caller's tenant
}

// BulkLimits bound bulk operations.
type BulkLimits struct {
	Running     int   `json:"running"`      // of a tenant
	ChangedJobs int   `json:"changed_jobs"` // the largest limit of an operation
	Errors      int   `json:"errors"`       // that an operation keeps
	RetentionMS int64 `json:"retention_ms"` // after its end
}

// TaskLimits bound tasks and reports about them.
type TaskLimits struct {
	IDLength       int   `json:"id_length"`
	PayloadBytes   int   `json:"payload_bytes"`
	RefBytes       int   `json:"ref_bytes"`
	ErrorBytes     int   `json:"error_bytes"`
	Steps          int   `json:"steps"`
	TimeoutMS      Bound `json:"timeout_ms"`
	SweepMS        int64 `json:"sweep_ms"`
	MaxRepublishes int   `json:"max_republishes"`
	RetentionMS    int64 `json:"retention_ms"`
}

// ScheduleLimits bound schedules.
type ScheduleLimits struct {
	Schedules       int   `json:"schedules"` // of a namespace
	EverySeconds    Bound `json:"every_seconds"`
	CronBytes       int   `json:"cron_bytes"`
	QueueLimit      Bound `json:"queue_limit"`
	MaxCatchupTicks Bound `json:"max_catchup_ticks"`
	CatchupGraceMS  int64 `json:"catchup_grace_ms"`
	PayloadBytes    int   `json:"payload_bytes"`
}

// CadenceLimits bound worker bindings and the activities that run by them.
type CadenceLimits struct {
	Bindings         int   `json:"bindings"` // of a namespace
	ActivityTypes    int   `json:"activity_types"`
	NameBytes        int   `json:"name_bytes"` // of a domain, a tasklist, a type
	Pollers          Bound `json:"pollers"`
	MaxInflightTasks Bound `json:"max_inflight_tasks"`
	ResultBytes      int   `json:"result_bytes"`
	HeartbeatBytes   int   `json:"heartbeat_bytes"`
}

// SecretLimits bound secrets.
type SecretLimits struct {
	Secrets        int `json:"secrets"` // of a namespace
	ValueBytes     int `json:"value_bytes"`
	VersionSecrets int `json:"version_secrets"` // that a version names
}

// DocumentLimits bound the documents of installs, and calls about them. The quotas of
// documents and bytes are configured on the server and are in the answer about a namespace.
type DocumentLimits struct {
	Installs         int   `json:"installs"`   // of a tenant
	Namespaces       int   `json:"namespaces"` // of an install
	KeyCharacters    int   `json:"key_characters"`
	ValueBytes       int   `json:"value_bytes"`
	ValueLevels      int   `json:"value_levels"` // of arrays and objects
	MetadataBytes    int   `json:"metadata_bytes"`
	BulkItems        int   `json:"bulk_items"`
	BulkBytes        int   `json:"bulk_bytes"`
	TTLSeconds       Bound `json:"ttl_seconds"`
	Page             Bound `json:"page"`
	SchemaBytes      int   `json:"schema_bytes"`
	Changes          int   `json:"changes"` // that a feed keeps at most
	InstallFunctions int   `json:"install_functions"`
}

// InvokeLimits bound the calls of functions by functions.
type InvokeLimits struct {
	Depth  int `json:"depth"`
	AtOnce int `json:"at_once"` // of one activation
}

// PageLimits bound a page of a list.
type PageLimits struct {
	Default int `json:"default"`
	Max     int `json:"max"`
}

// retentions is how long records of the caller's tenant are kept, in milliseconds, unless a
// version or a queue has another value.
type retentions struct{ activations, jobs int64 }

// limitsInForce collects the constants and the settings. A limit without a line here is one
// that clients cannot learn: add both together.
func limitsInForce(keep retentions) Limits {
	return Limits{
		Version: VersionLimits{
			TimeoutMS:       Bound{Min: 1, Max: api.MaxTimeoutMS, Default: api.DefaultTimeoutMS},
			WebTimeoutMaxMS: api.MaxWebTimeoutMS,
			CPUMS:           Bound{Min: api.MinCPUMS, Max: api.MaxCPUMS, Default: api.DefaultCPUMS},
			MemoryMB:        Bound{Min: api.MinMemoryMB, Max: api.MaxMemoryMB, Default: api.DefaultMemoryMB},
			MaxConcurrency:  Bound{Min: 1, Max: api.MaxMaxConcurrency, Default: api.DefaultMaxConcurrency},
			EnvEntries:      api.MaxEnvEntries,
			EnvBytes:        api.MaxEnvBytes,
			RecordMS:        Bound{Min: api.MinRetentionMS, Max: api.MaxRetentionMS, Default: keep.activations},
		},
		Bundle: BundleLimits{
			Bytes:          api.MaxBundleBytes,
			Files:          api.MaxBundleFiles,
			PathBytes:      api.MaxBundlePath,
			DraftJSONBytes: api.MaxDraftJSONBytes,
			DraftTTLMS:     api.DraftTTLMS,
		},
		Request: RequestLimits{
			EventBytes:          api.MaxEventBytes,
			OtherBodyBytes:      api.MaxRequestBytes,
			HeaderBytes:         api.MaxHeaderBytes,
			QueryBytes:          api.MaxQueryBytes,
			IdempotencyKeyBytes: rest.MaxIdempotencyKey,
		},
		Activation: ActivationLimits{
			ResultBytes:       api.MaxResultBytes,
			StoredResultBytes: api.MaxStoredResultBytes,
			ErrorMessageBytes: api.MaxErrorMessageBytes,
			ErrorStackBytes:   api.MaxErrorStackBytes,
			LogBytes:          api.MaxLogBytes,
			SentBytes:         api.MaxSentBytes,
			TTLMS:             keep.activations,
		},
		Job: jobLimits(keep.jobs),
		Queue: QueueLimits{
			MaxConcurrency: api.MaxQueueConcurrency,
			RateLimit:      api.MaxRateLimit,
			RetentionMS:    Bound{Min: api.MinRetentionMS, Max: api.MaxRetentionMS, Default: keep.jobs},
			RateWindowMS:   Bound{Min: api.MinRateWindowMS, Max: api.MaxRateWindowMS, Default: api.DefaultRateWindowMS},
		},
		Bulk: BulkLimits{
			Running: search.MaxBulkRunning, ChangedJobs: search.MaxBulkLimit, Errors: search.MaxBulkErrors, RetentionMS: search.BulkRetentionMS,
		},
		Agent:    agentLimits(),
		Budget:   budgetLimits(),
		Schedule: scheduleLimits(),
		Task:     taskLimits(),
		Cadence:  cadenceLimits(),
		Secret:   SecretLimits{Secrets: api.MaxSecrets, ValueBytes: api.MaxSecretBytes, VersionSecrets: api.MaxVersionSecrets},
		Document: documentLimits(),
		Invoke:   InvokeLimits{Depth: api.MaxInvokeDepth, AtOnce: api.MaxInvokesAtOnce},
		Page:     PageLimits{Default: api.DefaultPageLimit, Max: api.MaxPageLimit},
	}
}

func scheduleLimits() ScheduleLimits {
	return ScheduleLimits{
		Schedules:       api.MaxSchedules,
		EverySeconds:    Bound{Min: api.MinEverySeconds, Max: api.MaxEverySeconds},
		CronBytes:       api.MaxCronLength,
		QueueLimit:      Bound{Min: 1, Max: api.MaxQueueLimit, Default: api.DefaultQueueLimit},
		MaxCatchupTicks: Bound{Min: 1, Max: api.MaxMaxCatchupTicks, Default: api.DefaultMaxCatchupTicks},
		CatchupGraceMS:  api.CatchupGraceMS,
		PayloadBytes:    api.MaxSchedulePayload,
	}
}

func taskLimits() TaskLimits {
	return TaskLimits{
		IDLength:       api.MaxTaskIDLength,
		PayloadBytes:   api.MaxTaskPayloadBytes,
		RefBytes:       api.MaxTaskRefBytes,
		ErrorBytes:     api.MaxTaskErrorBytes,
		Steps:          api.MaxTaskSteps,
		TimeoutMS:      Bound{Min: api.MinTaskTimeoutMS, Max: api.MaxTaskTimeoutMS, Default: api.TaskStuckMS},
		SweepMS:        api.TaskSweepIntervalMS,
		MaxRepublishes: api.MaxTaskRepublishes,
		RetentionMS:    api.TaskRetentionMS,
	}
}

func cadenceLimits() CadenceLimits {
	return CadenceLimits{
		Bindings:         api.MaxBindings,
		ActivityTypes:    api.MaxActivityTypes,
		NameBytes:        api.MaxCadenceNameBytes,
		Pollers:          Bound{Min: 1, Max: api.MaxActivityPollers, Default: api.DefaultActivityPollers},
		MaxInflightTasks: Bound{Min: 1, Max: api.MaxInflightTasks, Default: api.DefaultInflightTasks},
		ResultBytes:      api.MaxActivityResultBytes,
		HeartbeatBytes:   api.MaxHeartbeatBytes,
	}
}

func documentLimits() DocumentLimits {
	return DocumentLimits{
		Installs:         api.MaxDocumentInstalls,
		Namespaces:       api.MaxDocumentNamespaces,
		KeyCharacters:    api.MaxDocumentKeyCharacters,
		ValueBytes:       api.MaxDocumentValueBytes,
		ValueLevels:      api.MaxDocumentNesting,
		MetadataBytes:    api.MaxDocumentMetadataBytes,
		BulkItems:        api.MaxDocumentBulkItems,
		BulkBytes:        api.MaxDocumentBulkBytes,
		TTLSeconds:       Bound{Min: api.MinDocumentTTLSeconds, Max: api.MaxDocumentTTLSeconds},
		Page:             Bound{Min: 1, Max: api.MaxDocumentPage, Default: api.DefaultDocumentPage},
		SchemaBytes:      api.MaxSchemaBytes,
		Changes:          api.MaxDocumentChanges,
		InstallFunctions: api.MaxInstallFunctions,
	}
}

func jobLimits(retentionMS int64) JobLimits {
	return JobLimits{
		PayloadBytes:       api.MaxJobPayloadBytes,
		ResultBytes:        api.MaxJobResultBytes,
		CheckpointBytes:    api.MaxCheckpointBytes,
		ErrorBytes:         api.MaxJobErrorBytes,
		StackBytes:         api.MaxJobStackBytes,
		EnqueueJobs:        api.MaxEnqueueJobs,
		EnqueueBodyBytes:   api.MaxEnqueueBytes,
		EnqueueSchemas:     api.MaxEnqueueSchemas,
		FetchJobs:          api.MaxFetchJobs,
		FetchQueues:        api.MaxFetchQueues,
		FetchWaitMS:        api.MaxFetchWaitMS,
		SettleJobs:         api.MaxSettleJobs,
		AckBodyBytes:       jobs.MaxAckBytes,
		HeartbeatBodyBytes: jobs.MaxHeartbeatBytes,
		LeaseMS:            Bound{Min: api.MinLeaseMS, Max: api.MaxLeaseMS, Default: api.DefaultLeaseMS},
		MaxAttempts:        Bound{Min: 1, Max: api.MaxMaxAttempts, Default: api.DefaultMaxAttempts},
		BaseDelayMS:        Bound{Min: 0, Max: api.MaxDelayMS, Default: api.DefaultBaseDelayMS},
		MaxDelayMS:         Bound{Min: 0, Max: api.MaxDelayMS, Default: api.DefaultMaxDelayMS},
		UniqueTTLMS:        Bound{Min: 1, Max: api.MaxUniqueTTLMS, Default: api.DefaultUniqueTTLMS},
		UniqueKeyBytes:     api.MaxUniqueKeyLength,
		Tags:               api.MaxTags,
		TagBytes:           api.MaxTagLength,
		Dependencies:       api.MaxDependencies,
		ChainSteps:         api.MaxChainSteps,
		RetentionMS:        retentionMS,
		OpenBatchMS:        api.OpenBatchRetentionMS,
	}
}
