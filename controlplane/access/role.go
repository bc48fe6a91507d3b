package access

import (
	"strings"

	"github.com/codesous/sous/api"
)

// roles maps each built-in role to the actions that it grants. A pattern that ends
// in * grants every action that begins with the text before it. Roles that a tenant
// defines (role:billing) are not in it: they grant nothing here, but a version can
// require them of its callers.
var roles = map[string][]Action{
	api.RoleAdmin: {"*"},
	api.RoleDeveloper: {
		"cs:function:*", "cs:schedule:*", "cs:trigger:*", "cs:cadence:worker:*", "cs:job:*", "cs:queue:*", "cs:batch:*", WorkerRead, "cs:task:*",
		"cs:storage:*", "cs:kv:*", "cs:secret:*", "cs:domain:*", "cs:webhook:*", "cs:activation:*", LimitsRead, UsageRead, BudgetRead, ProviderRead, TenantRead, ApprovalRead, ApprovalDecide,
	},
	api.RoleOperator: {
		FunctionRead, FunctionInvoke, AliasSet, "cs:schedule:*", "cs:trigger:*", "cs:cadence:worker:*", "cs:job:*", "cs:queue:*",
		BatchRead, WorkerRead, TaskRead, TaskCancel, StorageRead, "cs:secret:read", "cs:domain:*", WebhookRead, WebhookTest, ActivationRead, ActivationCancel,
		KVRead, AuditRead, LimitsRead, UsageRead, BudgetRead, ProviderRead, TenantRead, ApprovalRead, ApprovalDecide,
	},
	api.RoleInvoker: {FunctionInvoke, JobEnqueue, JobRead, ActivationRead, TenantRead},
	api.RoleWorker:  {JobEnqueue, JobRead, JobFetch, JobSettle, TaskCreate, TaskRead, TaskWork},
	api.RoleViewer: {
		FunctionRead, ScheduleRead, TriggerRead, BindingRead, JobRead, QueueRead,
		BatchRead, WorkerRead, TaskRead, StorageRead, KVRead, DomainRead, WebhookRead, ActivationRead, LimitsRead, UsageRead, BudgetRead, ProviderRead, TenantRead, ApprovalRead,
	},
	api.RoleApprover: {ApprovalRead, ApprovalDecide, TenantRead},
}

// granted reports whether one of the named roles grants action. Roles that are not
// built in grant nothing.
func granted(names []string, action Action) bool {
	for _, name := range names {
		for _, pattern := range roles[name] {
			prefix, all := strings.CutSuffix(string(pattern), "*")
			if pattern == action || all && strings.HasPrefix(string(action), prefix) {
				return true
			}
		}
	}
	return false
}
