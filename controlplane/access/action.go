package access

import "strings"

// Action names what a request does, for example cs:function:publish: cs, the kind of
// resource, the verb. Roles grant actions, and the audit log records them. Audit events
// store this text and callers filter by it, so an action must not be renamed.
type Action string

// The actions. The first three are not granted by roles: they say that a route is
// open to every request, to every valid API key, or to the runners' token. The zero Action
// is none of them: a route without an Action is closed.
const (
	Public = Action("public")
	AnyKey = Action("any key")
	Runner = Action("runner")

	FunctionCreate   = Action("cs:function:create")
	FunctionRead     = Action("cs:function:read")
	FunctionDelete   = Action("cs:function:delete")
	DraftUpload      = Action("cs:function:draft:upload")
	FunctionPublish  = Action("cs:function:publish")
	AliasSet         = Action("cs:function:alias:set")
	FunctionInvoke   = Action("cs:function:invoke")
	ActivationRead   = Action("cs:activation:read")
	ActivationCancel = Action("cs:activation:cancel")
	TenantRead       = Action("cs:tenant:read")
	LimitsRead       = Action("cs:limits:read")
	LimitsWrite      = Action("cs:limits:write")
	UsageRead        = Action("cs:usage:read")
	PriceWrite       = Action("cs:price:write")
	BudgetRead       = Action("cs:budget:read")
	BudgetWrite      = Action("cs:budget:write")
	KVRead           = Action("cs:kv:read")
	KVDelete         = Action("cs:kv:delete")
	KeyCreate        = Action("cs:key:create")
	KeyRead          = Action("cs:key:read")
	KeyRevoke        = Action("cs:key:revoke")
	AuditRead        = Action("cs:audit:read")

	JobEnqueue     = Action("cs:job:enqueue")
	JobRead        = Action("cs:job:read")
	JobFetch       = Action("cs:job:fetch")
	JobSettle      = Action("cs:job:settle")
	JobSteer       = Action("cs:job:steer")
	JobDelete      = Action("cs:job:delete")
	QueueRead      = Action("cs:queue:read")
	QueueConfigure = Action("cs:queue:configure")
	QueueClear     = Action("cs:queue:clear")
	QueueDelete    = Action("cs:queue:delete")
	BatchCreate    = Action("cs:batch:create")
	BatchRead      = Action("cs:batch:read")
	BatchSeal      = Action("cs:batch:seal")
	BatchDelete    = Action("cs:batch:delete")
	WorkerRead     = Action("cs:worker:read")

	ScheduleCreate = Action("cs:schedule:create")
	ScheduleRead   = Action("cs:schedule:read")
	ScheduleUpdate = Action("cs:schedule:update")
	ScheduleDelete = Action("cs:schedule:delete")
	ScheduleRun    = Action("cs:schedule:run")

	TaskCreate    = Action("cs:task:create")
	TaskRead      = Action("cs:task:read")
	TaskWork      = Action("cs:task:work")
	TaskCancel    = Action("cs:task:cancel")
	StorageRead   = Action("cs:storage:read")
	StorageWrite  = Action("cs:storage:write")
	StorageDelete = Action("cs:storage:delete")
	StorageAdmin  = Action("cs:storage:admin")

	BindingCreate  = Action("cs:cadence:worker:create")
	BindingRead    = Action("cs:cadence:worker:read")
	BindingUpdate  = Action("cs:cadence:worker:update")
	BindingDelete  = Action("cs:cadence:worker:delete")
	TriggerRead    = Action("cs:trigger:read")
	TriggerWrite   = Action("cs:trigger:write")
	TriggerDelete  = Action("cs:trigger:delete")
	DomainRead     = Action("cs:domain:read")
	DomainWrite    = Action("cs:domain:write")
	DomainVerify   = Action("cs:domain:verify")
	DomainDelete   = Action("cs:domain:delete")
	WebhookCreate  = Action("cs:webhook:create")
	WebhookRead    = Action("cs:webhook:read")
	WebhookUpdate  = Action("cs:webhook:update")
	WebhookDelete  = Action("cs:webhook:delete")
	WebhookTest    = Action("cs:webhook:test")
	ProviderRead   = Action("cs:provider:read")
	ProviderWrite  = Action("cs:provider:write")
	ProviderDelete = Action("cs:provider:delete")
	ApprovalRead   = Action("cs:approval:read")
	ApprovalDecide = Action("cs:approval:decide")
	ApprovalWrite  = Action("cs:approval:write")
	MirrorRead     = Action("cs:mirror:read")
	MirrorRebuild  = Action("cs:mirror:rebuild")
	SecretWrite    = Action("cs:secret:write")
	SecretRead     = Action("cs:secret:read")
	SecretDelete   = Action("cs:secret:delete")
	SecretRewrap   = Action("cs:secret:rewrap")
)

// Audited reports whether requests with this action are recorded in the audit log.
// Reads are not. Neither are invocations, writes of documents, and the frequent writes of
// producers and workers: they are too many, and leave records of their own.
func (a Action) Audited() bool {
	switch a {
	case Public, AnyKey, Runner, FunctionInvoke, StorageWrite, StorageDelete,
		JobEnqueue, JobFetch, JobSettle, BatchCreate, BatchSeal,
		TaskCreate, TaskWork:
		return false
	}
	return !strings.HasSuffix(string(a), ":read")
}
