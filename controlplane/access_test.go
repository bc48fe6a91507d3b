package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage/storagetest"
)

// How far a key of one namespace comes on a route.
const (
	reachAll      = "all"       // as far as any key
	reachPath     = "path"      // the path's namespace must be its own
	reachQuery    = "query"     // the query's must
	reachRecord   = "record"    // records of other namespaces do not exist
	reachJob      = "job"       // jobs of other namespaces do not exist
	reachBulk     = "bulk"      // bulk operations of other namespaces do not exist
	reachTask     = "task"      // tasks of other namespaces do not exist
	reachInstall  = "install"   // the install must be a function's of its own
	reachNothing  = "nothing"   // the route is for the whole tenant
	reachNoTenant = "no tenant" // the route is for keys of all tenants
)

// row says who may use a route, by role (a for admin, d developer, o operator, i
// invoker, p approver, v viewer, w worker; * for any key, - for every caller and ! for runners), with a request
// that does no harm. T, N, F are as in docs/api.md, A is an activation, J an active
// job and C a cancelled one.
type row struct {
	route, roles, reach string
	path, body          string
	action              string
}

// accessRows declares who may use each route a second time, independently of the code.
var accessRows = []row{
	{route: "GET /healthz", roles: "-", reach: reachAll, path: "/healthz", body: "", action: ""},
	{route: "GET /readyz", roles: "-", reach: reachAll, path: "/readyz", body: "", action: ""},
	{route: "GET /", roles: "-", reach: reachAll, path: "/", body: "", action: ""},
	{route: "GET /approve/{tenant}/{link}", roles: "-", reach: reachAll, path: "/approve/t_default/none", body: "", action: ""},
	{route: "POST /approve/{tenant}/{link}", roles: "-", reach: reachAll, path: "/approve/t_default/none", body: "{}", action: ""},
	{route: "GET /console", roles: "-", reach: reachAll, path: "/console", body: "", action: ""},
	{route: "GET /console/*", roles: "-", reach: reachAll, path: "/console/t_default/default", body: "", action: ""},
	{route: "GET /console/api/session", roles: "-", reach: reachAll, path: "/console/api/session", body: "", action: ""},
	{route: "POST /console/api/session", roles: "-", reach: reachAll, path: "/console/api/session", body: "{}", action: ""},
	{route: "DELETE /console/api/session", roles: "-", reach: reachAll, path: "/console/api/session", body: "", action: ""},
	{route: "GET /docs", roles: "-", reach: reachAll, path: "/docs", body: "", action: ""},
	{route: "GET /docs/*", roles: "-", reach: reachAll, path: "/docs/queue", body: "", action: ""},
	{route: "GET /docs/reference", roles: "-", reach: reachAll, path: "/docs/reference", body: "", action: ""},
	{route: "GET /openapi.json", roles: "-", reach: reachAll, path: "/openapi.json", body: "", action: ""},
	{route: "GET /v1/limits", roles: "*", reach: reachAll, path: "/v1/limits", body: "", action: ""},
	{route: "GET /v1/whoami", roles: "*", reach: reachAll, path: "/v1/whoami", body: "", action: ""},

	{route: "POST /v1/mcp", roles: "*", reach: reachAll, path: "/v1/mcp", body: "{}", action: ""},

	{route: "GET /v1/admin/mirror", roles: "a", reach: reachNoTenant, path: "/v1/admin/mirror", body: "", action: "cs:mirror:read"},
	{route: "POST /v1/admin/mirror:rebuild", roles: "a", reach: reachNoTenant, path: "/v1/admin/mirror:rebuild", body: "", action: "cs:mirror:rebuild"},

	{route: "GET T", roles: "adoivp", reach: reachAll, path: "T", body: "", action: "cs:tenant:read"},
	{route: "GET T/limits", roles: "adov", reach: reachNothing, path: "T/limits", body: "", action: "cs:limits:read"},
	{route: "PUT T/limits", roles: "a", reach: reachNoTenant, path: "T/limits", body: "{}", action: "cs:limits:write"},
	{route: "GET T/usage/ai", roles: "adov", reach: reachAll, path: "T/usage/ai", body: "", action: "cs:usage:read"},
	{route: "GET T/prices", roles: "adov", reach: reachNothing, path: "T/prices", body: "", action: "cs:usage:read"},
	{route: "PUT T/prices", roles: "a", reach: reachNothing, path: "T/prices", body: "{}", action: "cs:price:write"},
	{route: "GET T/budgets", roles: "adov", reach: reachNothing, path: "T/budgets", body: "", action: "cs:budget:read"},
	{route: "GET T/budgets/{budget}", roles: "adov", reach: reachNothing, path: "T/budgets/all", body: "", action: "cs:budget:read"},
	{route: "PUT T/budgets/{budget}", roles: "a", reach: reachNothing, path: "T/budgets/all", body: "{}", action: "cs:budget:write"},
	{route: "DELETE T/budgets/{budget}", roles: "a", reach: reachNothing, path: "T/budgets/all", body: "", action: "cs:budget:write"},
	{route: "GET T/approvals", roles: "adovp", reach: reachAll, path: "T/approvals", body: "", action: "cs:approval:read"},
	{route: "GET T/approvals/{job_id}", roles: "adovp", reach: reachAll, path: "T/approvals/00000000-0000-7000-8000-000000000000", body: "", action: "cs:approval:read"},
	{route: "POST T/approvals/{job_id}:approve", roles: "adop", reach: reachAll, path: "T/approvals/00000000-0000-7000-8000-000000000000:approve", body: "", action: "cs:approval:decide"},
	{route: "POST T/approvals/{job_id}:reject", roles: "adop", reach: reachAll, path: "T/approvals/00000000-0000-7000-8000-000000000000:reject", body: "", action: "cs:approval:decide"},
	{route: "POST T/approvals/{job_id}:link", roles: "adop", reach: reachAll, path: "T/approvals/00000000-0000-7000-8000-000000000000:link", body: `{"for":"ada"}`, action: "cs:approval:decide"},
	{route: "GET T/approval-links", roles: "adovp", reach: reachAll, path: "T/approval-links", body: "", action: "cs:approval:read"},
	{route: "DELETE T/approval-links/{link}", roles: "adop", reach: reachAll, path: "T/approval-links/none", body: "", action: "cs:approval:decide"},
	{route: "GET T/approval-policies", roles: "adovp", reach: reachNothing, path: "T/approval-policies", body: "", action: "cs:approval:read"},
	{route: "GET T/approval-policies/{policy}", roles: "adovp", reach: reachNothing, path: "T/approval-policies/all", body: "", action: "cs:approval:read"},
	{route: "PUT T/approval-policies/{policy}", roles: "a", reach: reachNothing, path: "T/approval-policies/all", body: "{}", action: "cs:approval:write"},
	{route: "DELETE T/approval-policies/{policy}", roles: "a", reach: reachNothing, path: "T/approval-policies/all", body: "", action: "cs:approval:write"},
	{route: "GET T/approval-delegations", roles: "adovp", reach: reachNothing, path: "T/approval-delegations", body: "", action: "cs:approval:read"},
	{route: "POST T/approval-delegations", roles: "adop", reach: reachNothing, path: "T/approval-delegations", body: "{}", action: "cs:approval:decide"},
	{route: "DELETE T/approval-delegations/{delegation}", roles: "adop", reach: reachNothing, path: "T/approval-delegations/none", body: "", action: "cs:approval:decide"},
	{route: "DELETE T/prices", roles: "a", reach: reachNothing, path: "T/prices?model=m", body: "", action: "cs:price:write"},
	{route: "GET T/providers", roles: "adov", reach: reachNothing, path: "T/providers", body: "", action: "cs:provider:read"},
	{route: "GET T/providers/{provider}", roles: "adov", reach: reachNothing, path: "T/providers/main", body: "", action: "cs:provider:read"},
	{route: "PUT T/providers/{provider}", roles: "a", reach: reachNothing, path: "T/providers/main", body: `{"kind":"nothing"}`, action: "cs:provider:write"},
	{route: "DELETE T/providers/{provider}", roles: "a", reach: reachNothing, path: "T/providers/ghost", body: "", action: "cs:provider:delete"},
	{route: "GET T/usage", roles: "adov", reach: reachNothing, path: "T/usage", body: "", action: "cs:usage:read"},
	{route: "GET T/namespaces", roles: "adoivp", reach: reachAll, path: "T/namespaces", body: "", action: "cs:tenant:read"},

	{route: "POST N/functions", roles: "ad", reach: reachPath, path: "N/functions", body: "{}", action: "cs:function:create"},
	{route: "GET N/functions", roles: "adov", reach: reachPath, path: "N/functions", body: "", action: "cs:function:read"},
	{route: "GET N/functions:calls", roles: "adov", reach: reachPath, path: "N/functions:calls", body: "", action: "cs:function:read"},
	{route: "GET F", roles: "adov", reach: reachPath, path: "F", body: "", action: "cs:function:read"},
	{route: "DELETE F", roles: "ad", reach: reachPath, path: "N/functions/ghost", body: "", action: "cs:function:delete"},
	{route: "POST F:invoke", roles: "adoi", reach: reachPath, path: "F:invoke", body: `{"ref":{"alias":"prod"}}`, action: "cs:function:invoke"},
	{route: "PUT F/draft", roles: "ad", reach: reachPath, path: "F/draft", body: "{}", action: "cs:function:draft:upload"},
	{route: "POST F/versions", roles: "ad", reach: reachPath, path: "F/versions", body: "{}", action: "cs:function:publish"},
	{route: "GET F/versions", roles: "adov", reach: reachPath, path: "F/versions", body: "", action: "cs:function:read"},
	{route: "GET F/versions/{version}", roles: "adov", reach: reachPath, path: "F/versions/1", body: "", action: "cs:function:read"},
	{route: "GET F/versions/{version}/bundle", roles: "adov", reach: reachPath, path: "F/versions/1/bundle", body: "", action: "cs:function:read"},
	{route: "GET F/aliases", roles: "adov", reach: reachPath, path: "F/aliases", body: "", action: "cs:function:read"},
	{route: "GET F/aliases/{alias}", roles: "adov", reach: reachPath, path: "F/aliases/prod", body: "", action: "cs:function:read"},
	{route: "PUT F/aliases/{alias}", roles: "ado", reach: reachPath, path: "F/aliases/prod", body: "{}", action: "cs:function:alias:set"},
	{route: "DELETE F/aliases/{alias}", roles: "ado", reach: reachPath, path: "F/aliases/ghost", body: "", action: "cs:function:alias:set"},

	{route: "GET T/activations", roles: "adoiv", reach: reachQuery, path: "T/activations?namespace=payments&function=hello", body: "", action: "cs:activation:read"},
	{route: "GET A", roles: "adoiv", reach: reachRecord, path: "A", body: "", action: "cs:activation:read"},
	{route: "GET A/logs", roles: "adoiv", reach: reachRecord, path: "A/logs", body: "", action: "cs:activation:read"},
	{route: "POST A:cancel", roles: "ado", reach: reachRecord, path: "A:cancel", body: "", action: "cs:activation:cancel"},

	{route: "POST T/keys", roles: "a", reach: reachNothing, path: "T/keys", body: "{}", action: "cs:key:create"},
	{route: "GET T/keys", roles: "a", reach: reachNothing, path: "T/keys", body: "", action: "cs:key:read"},
	{route: "GET T/keys/{key_id}", roles: "a", reach: reachNothing, path: "T/keys/key_00000000000000000000000000", body: "", action: "cs:key:read"},
	{route: "DELETE T/keys/{key_id}", roles: "a", reach: reachNothing, path: "T/keys/key_00000000000000000000000000", body: "", action: "cs:key:revoke"},
	{route: "GET T/audit", roles: "ao", reach: reachNothing, path: "T/audit", body: "", action: "cs:audit:read"},

	{route: "POST N/queues/{queue}/jobs", roles: "adoiw", reach: reachPath, path: "N/queues/emails/jobs", body: "[]", action: "cs:job:enqueue"},
	{route: "GET N/queues/{queue}/jobs", roles: "adoivw", reach: reachPath, path: "N/queues/emails/jobs", body: "", action: "cs:job:read"},
	{route: "POST T/jobs:fetch", roles: "adow", reach: reachQuery, path: "T/jobs:fetch", body: `{"namespace":"payments","queues":["nothing"],"worker_id":"w1"}`, action: "cs:job:fetch"},
	{route: "POST /sous.worker.v1.WorkerService/Lifecycle", roles: "*", reach: reachAll, path: "/sous.worker.v1.WorkerService/Lifecycle", body: "", action: ""}, // its frames: TestStreamHasTheRightsOfItsKey
	{route: "POST T/jobs:ack", roles: "adow", reach: reachAll, path: "T/jobs:ack", body: `{"acks":[{"id":"` + activationID + `","lease_epoch":1}]}`, action: "cs:job:settle"},
	{route: "POST T/jobs:fail", roles: "adow", reach: reachAll, path: "T/jobs:fail", body: `{"fails":[{"id":"` + activationID + `","lease_epoch":1,"error":"x"}]}`, action: "cs:job:settle"},
	{route: "POST T/jobs:heartbeat", roles: "adow", reach: reachAll, path: "T/jobs:heartbeat", body: `{"worker_id":"w1","jobs":[{"id":"` + activationID + `","lease_epoch":1}]}`, action: "cs:job:settle"},
	{route: "GET T/jobs", roles: "adoivw", reach: reachQuery, path: "T/jobs?namespace=payments&state=dead", body: "", action: "cs:job:read"},
	{route: "GET T/jobs:series", roles: "adoivw", reach: reachQuery, path: "T/jobs:series?namespace=payments&from_ms=1&to_ms=2", body: "", action: "cs:job:read"},
	{route: "POST T/bulk", roles: "ado", reach: reachQuery, path: "T/bulk", body: `{"operation":"retry","selection":{"namespace":"payments"}}`, action: "cs:job:steer"},
	{route: "POST T/bulk:preview", roles: "adoivw", reach: reachQuery, path: "T/bulk:preview", body: `{"operation":"retry","selection":{"namespace":"payments"}}`, action: "cs:job:read"},
	{route: "GET T/bulk", roles: "adoivw", reach: reachAll, path: "T/bulk", body: "", action: "cs:job:read"},
	{route: "GET T/bulk/{bulk_id}", roles: "adoivw", reach: reachBulk, path: "T/bulk/B", body: "", action: "cs:job:read"},
	{route: "POST T/bulk/{bulk_id}:cancel", roles: "ado", reach: reachBulk, path: "T/bulk/B:cancel", body: "", action: "cs:job:steer"},
	{route: "GET T/activations:series", roles: "adoiv", reach: reachQuery, path: "T/activations:series?namespace=payments&from_ms=1&to_ms=2", body: "", action: "cs:activation:read"},
	{route: "GET T/jobs/{job_id}", roles: "adoivw", reach: reachJob, path: "T/jobs/J", body: "", action: "cs:job:read"},
	{route: "GET T/jobs/{job_id}/iterations", roles: "adoivw", reach: reachJob, path: "T/jobs/J/iterations", body: "", action: "cs:job:read"},
	{route: "GET T/runs/{run_id}", roles: "adoivw", reach: reachJob, path: "T/runs/J", body: "", action: "cs:job:read"},
	{route: "POST T/runs/{run_id}/events", roles: "adoiw", reach: reachJob, path: "T/runs/J/events", body: `{"name":"paid"}`, action: "cs:job:enqueue"},
	{route: "POST N/events", roles: "adoiw", reach: reachPath, path: "N/events", body: `{"name":"paid"}`, action: "cs:job:enqueue"},
	{route: "DELETE T/jobs/{job_id}", roles: "ado", reach: reachJob, path: "T/jobs/J", body: "", action: "cs:job:delete"},
	{route: "GET T/events", roles: "adoivw", reach: reachAll, path: "T/events", body: "", action: "cs:job:read"},
	{route: "GET T/events:follow", roles: "adoivw", reach: reachAll, path: "T/events:follow?limit=0", body: "", action: "cs:job:read"},
	{route: "POST T/jobs/{job_id}:retry", roles: "ado", reach: reachJob, path: "T/jobs/J:retry", body: "", action: "cs:job:steer"},
	{route: "POST T/jobs/{job_id}:cancel", roles: "ado", reach: reachJob, path: "T/jobs/C:cancel", body: "", action: "cs:job:steer"},
	{route: "POST T/jobs/{job_id}:hold", roles: "ado", reach: reachJob, path: "T/jobs/J:hold", body: "", action: "cs:job:steer"},
	{route: "POST T/jobs/{job_id}:approve", roles: "ado", reach: reachJob, path: "T/jobs/J:approve", body: "", action: "cs:job:steer"},
	{route: "POST T/jobs/{job_id}:reject", roles: "ado", reach: reachJob, path: "T/jobs/J:reject", body: "", action: "cs:job:steer"},
	{route: "POST T/jobs/{job_id}:move", roles: "ado", reach: reachJob, path: "T/jobs/J:move", body: `{"queue":"others"}`, action: "cs:job:steer"},
	{route: "GET N/queues", roles: "adov", reach: reachPath, path: "N/queues", body: "", action: "cs:queue:read"},
	{route: "GET N/queues/{queue}", roles: "adov", reach: reachPath, path: "N/queues/emails", body: "", action: "cs:queue:read"},
	{route: "PATCH N/queues/{queue}", roles: "ado", reach: reachPath, path: "N/queues/emails", body: "{}", action: "cs:queue:configure"},
	{route: "DELETE N/queues/{queue}", roles: "ado", reach: reachPath, path: "N/queues/ghost", body: "", action: "cs:queue:delete"},
	{route: "POST N/queues/{queue}:clear", roles: "ado", reach: reachPath, path: "N/queues/ghost:clear", body: "", action: "cs:queue:clear"},
	{route: "POST N/queues/{queue}:drain", roles: "ado", reach: reachPath, path: "N/queues/ghost:drain", body: "", action: "cs:queue:configure"},
	{route: "POST N/queues/{queue}:resume", roles: "ado", reach: reachPath, path: "N/queues/ghost:resume", body: "", action: "cs:queue:configure"},
	{route: "POST N/queues/{queue}:redrive", roles: "ado", reach: reachPath, path: "N/queues/ghost:redrive", body: "", action: "cs:job:steer"},
	{route: "POST N/batches", roles: "ad", reach: reachPath, path: "N/batches", body: `{"callback":{}}`, action: "cs:batch:create"},
	{route: "GET N/batches", roles: "adov", reach: reachPath, path: "N/batches", body: "", action: "cs:batch:read"},
	{route: "DELETE N/batches/{batch_id}", roles: "ad", reach: reachPath, path: "N/batches/" + activationID, body: "", action: "cs:batch:delete"},
	{route: "GET N/batches/{batch_id}", roles: "adov", reach: reachPath, path: "N/batches/" + activationID, body: "", action: "cs:batch:read"},
	{route: "POST N/batches/{batch_id}:seal", roles: "ad", reach: reachPath, path: "N/batches/" + activationID + ":seal", body: "", action: "cs:batch:seal"},
	{route: "GET T/workers", roles: "adov", reach: reachAll, path: "T/workers", body: "", action: "cs:worker:read"},

	{route: "POST N/schedules", roles: "ado", reach: reachPath, path: "N/schedules", body: "{}", action: "cs:schedule:create"},
	{route: "GET N/schedules", roles: "adov", reach: reachPath, path: "N/schedules", body: "", action: "cs:schedule:read"},
	{route: "GET N/schedules/{schedule}", roles: "adov", reach: reachPath, path: "N/schedules/ghost", body: "", action: "cs:schedule:read"},
	{route: "PATCH N/schedules/{schedule}", roles: "ado", reach: reachPath, path: "N/schedules/ghost", body: "{}", action: "cs:schedule:update"},
	{route: "DELETE N/schedules/{schedule}", roles: "ado", reach: reachPath, path: "N/schedules/ghost", body: "", action: "cs:schedule:delete"},
	{route: "POST N/schedules/{schedule}:run", roles: "ado", reach: reachPath, path: "N/schedules/ghost:run", body: "", action: "cs:schedule:run"},

	{route: "GET N/triggers", roles: "adov", reach: reachPath, path: "N/triggers", body: "", action: "cs:trigger:read"},
	{route: "GET N/queues/{queue}/trigger", roles: "adov", reach: reachPath, path: "N/queues/ghost/trigger", body: "", action: "cs:trigger:read"},
	{route: "PUT N/queues/{queue}/trigger", roles: "ado", reach: reachPath, path: "N/queues/ghost/trigger", body: `{"function":"ghost"}`, action: "cs:trigger:write"},
	{route: "DELETE N/queues/{queue}/trigger", roles: "ado", reach: reachPath, path: "N/queues/ghost/trigger", body: "", action: "cs:trigger:delete"},

	{route: "PUT T/tasks/{task_type}/{task_id}", roles: "adw", reach: reachQuery, path: "T/tasks/email-send/k1", body: `{"namespace":"payments"}`, action: "cs:task:create"},
	{route: "GET T/tasks/{task_type}/{task_id}", roles: "adovw", reach: reachTask, path: "T/tasks/email-send/k1", body: "", action: "cs:task:read"},
	{route: "GET T/tasks", roles: "adovw", reach: reachAll, path: "T/tasks", body: "", action: "cs:task:read"},
	{route: "GET T/tasks/{task_type}/{task_id}:events", roles: "adovw", reach: reachTask, path: "T/tasks/email-send/k1:events", body: "", action: "cs:task:read"},
	{route: "GET T/tasks/{task_type}:events", roles: "adovw", reach: reachAll, path: "T/tasks/email-send:events", body: "", action: "cs:task:read"},
	{route: "POST T/tasks/{task_type}/{task_id}:claim", roles: "adw", reach: reachTask, path: "T/tasks/email-send/k1:claim", body: `{"worker":"w1"}`, action: "cs:task:work"},
	{route: "POST T/tasks/{task_type}/{task_id}:step", roles: "adw", reach: reachTask, path: "T/tasks/email-send/k1:step", body: `{"worker":"w2","step":1}`, action: "cs:task:work"},
	{route: "POST T/tasks/{task_type}/{task_id}:complete", roles: "adw", reach: reachTask, path: "T/tasks/email-send/k1:complete", body: `{"worker":"w2"}`, action: "cs:task:work"},
	{route: "POST T/tasks/{task_type}/{task_id}:fail", roles: "adw", reach: reachTask, path: "T/tasks/email-send/k1:fail", body: `{"worker":"w2","error":"x"}`, action: "cs:task:work"},
	{route: "POST T/tasks/{task_type}/{task_id}:cancel", roles: "ado", reach: reachTask, path: "T/tasks/email-send/k1:cancel", body: "", action: "cs:task:cancel"},
	{route: "POST N/cadence/workers", roles: "ado", reach: reachPath, path: "N/cadence/workers", body: "{}", action: "cs:cadence:worker:create"},
	{route: "GET N/cadence/workers", roles: "adov", reach: reachPath, path: "N/cadence/workers", body: "", action: "cs:cadence:worker:read"},
	{route: "GET N/cadence/workers/{worker}", roles: "adov", reach: reachPath, path: "N/cadence/workers/ghost", body: "", action: "cs:cadence:worker:read"},
	{route: "PATCH N/cadence/workers/{worker}", roles: "ado", reach: reachPath, path: "N/cadence/workers/ghost", body: "{}", action: "cs:cadence:worker:update"},
	{route: "DELETE N/cadence/workers/{worker}", roles: "ado", reach: reachPath, path: "N/cadence/workers/ghost", body: "", action: "cs:cadence:worker:delete"},

	{route: "GET N/kv", roles: "adov", reach: reachPath, path: "N/kv", body: "", action: "cs:kv:read"},
	{route: "GET N/kv/value", roles: "adov", reach: reachPath, path: "N/kv/value?key=ghost", body: "", action: "cs:kv:read"},
	{route: "DELETE N/kv/value", roles: "ad", reach: reachPath, path: "N/kv/value?key=ghost", body: "", action: "cs:kv:delete"},
	{route: "PUT N/secrets/{secret}", roles: "ad", reach: reachPath, path: "N/secrets/ghost", body: "{}", action: "cs:secret:write"},
	{route: "GET N/secrets", roles: "ado", reach: reachPath, path: "N/secrets", body: "", action: "cs:secret:read"},
	{route: "GET N/secrets/{secret}", roles: "ado", reach: reachPath, path: "N/secrets/ghost", body: "", action: "cs:secret:read"},
	{route: "DELETE N/secrets/{secret}", roles: "ad", reach: reachPath, path: "N/secrets/ghost", body: "", action: "cs:secret:delete"},
	{route: "POST T/secrets:rewrap", roles: "ad", reach: reachNothing, path: "T/secrets:rewrap", body: "", action: "cs:secret:rewrap"},

	{route: "GET T/domains", roles: "adov", reach: reachNothing, path: "T/domains", body: "", action: "cs:domain:read"},
	{route: "GET T/domains/{domain}", roles: "adov", reach: reachNothing, path: "T/domains/ghost.example.com", body: "", action: "cs:domain:read"},
	{route: "PUT T/domains/{domain}", roles: "ado", reach: reachNothing, path: "T/domains/ghost.example.com", body: `{"namespace":"payments","function":"ghost"}`, action: "cs:domain:write"},
	{route: "POST T/domains/{domain}:verify", roles: "ado", reach: reachNothing, path: "T/domains/ghost.example.com:verify", body: "", action: "cs:domain:verify"},
	{route: "DELETE T/domains/{domain}", roles: "ado", reach: reachNothing, path: "T/domains/ghost.example.com", body: "", action: "cs:domain:delete"},
	{route: "POST T/webhooks", roles: "ad", reach: reachNothing, path: "T/webhooks", body: `{"name":"w","url":"https://example.com","events":["nothing"]}`, action: "cs:webhook:create"},
	{route: "GET T/webhooks", roles: "adov", reach: reachNothing, path: "T/webhooks", body: "", action: "cs:webhook:read"},
	{route: "GET T/webhooks/{webhook}", roles: "adov", reach: reachNothing, path: "T/webhooks/ghost", body: "", action: "cs:webhook:read"},
	{route: "PUT T/webhooks/{webhook}", roles: "ad", reach: reachNothing, path: "T/webhooks/ghost", body: `{"url":"https://example.com","events":["nothing"]}`, action: "cs:webhook:update"},
	{route: "PATCH T/webhooks/{webhook}", roles: "ad", reach: reachNothing, path: "T/webhooks/ghost", body: `{"enabled":false}`, action: "cs:webhook:update"},
	{route: "DELETE T/webhooks/{webhook}", roles: "ad", reach: reachNothing, path: "T/webhooks/ghost", body: "", action: "cs:webhook:delete"},
	{route: "POST T/webhooks/{webhook}:rotate", roles: "ad", reach: reachNothing, path: "T/webhooks/ghost:rotate", body: "", action: "cs:webhook:update"},
	{route: "POST T/webhooks/{webhook}:test", roles: "ado", reach: reachNothing, path: "T/webhooks/ghost:test", body: "", action: "cs:webhook:test"},
	{route: "GET T/webhooks/{webhook}/deliveries", roles: "adov", reach: reachNothing, path: "T/webhooks/ghost/deliveries", body: "", action: "cs:webhook:read"},
	{route: "POST T/webhooks/{webhook}/deliveries/{delivery}:redeliver", roles: "ado", reach: reachNothing, path: "T/webhooks/ghost/deliveries/1-1:redeliver", body: "", action: "cs:webhook:test"},

	{route: "GET T/installs", roles: "adov", reach: reachNothing, path: "T/installs", body: "", action: "cs:storage:read"},
	{route: "PUT T/installs/{install}", roles: "ad", reach: reachNothing, path: "T/installs/crm", body: "[]", action: "cs:storage:admin"},
	{route: "GET I", roles: "adov", reach: reachInstall, path: "I", body: "", action: "cs:storage:read"},
	{route: "DELETE I", roles: "ad", reach: reachInstall, path: "I", body: "", action: "cs:storage:admin"},
	{route: "GET S/namespaces", roles: "adov", reach: reachInstall, path: "S/namespaces", body: "", action: "cs:storage:read"},
	{route: "GET S/namespaces/{document_namespace}", roles: "adov", reach: reachInstall, path: "S/namespaces/ghost", body: "", action: "cs:storage:read"},
	{route: "DELETE S/namespaces/{document_namespace}", roles: "ad", reach: reachInstall, path: "S/namespaces/ghost", body: "", action: "cs:storage:admin"},
	{route: "GET S/namespaces/{document_namespace}/schema", roles: "adov", reach: reachInstall, path: "S/namespaces/ghost/schema", body: "", action: "cs:storage:read"},
	{route: "PUT S/namespaces/{document_namespace}/schema", roles: "ad", reach: reachInstall, path: "S/namespaces/ghost/schema", body: "[]", action: "cs:storage:admin"},
	{route: "DELETE S/namespaces/{document_namespace}/schema", roles: "ad", reach: reachInstall, path: "S/namespaces/ghost/schema", body: "", action: "cs:storage:admin"},
	{route: "GET S/namespaces/{document_namespace}/changes", roles: "adov", reach: reachInstall, path: "S/namespaces/ghost/changes", body: "", action: "cs:storage:read"},
	{route: "GET S/namespaces/{document_namespace}/records", roles: "adov", reach: reachInstall, path: "S/namespaces/ghost/records", body: "", action: "cs:storage:read"},
	{route: "GET S/namespaces/{document_namespace}/records/{key}", roles: "adov", reach: reachInstall, path: "S/namespaces/ghost/records/k", body: "", action: "cs:storage:read"},
	{route: "PUT S/namespaces/{document_namespace}/records/{key}", roles: "ad", reach: reachInstall, path: "S/namespaces/ghost/records/k", body: "[]", action: "cs:storage:write"},
	{route: "DELETE S/namespaces/{document_namespace}/records/{key}", roles: "ad", reach: reachInstall, path: "S/namespaces/ghost/records/k", body: "", action: "cs:storage:delete"},
	{route: "GET S/get", roles: "adov", reach: reachInstall, path: "S/get?namespace=ghost&key=k", body: "", action: "cs:storage:read"},
	{route: "POST S/list", roles: "adov", reach: reachInstall, path: "S/list", body: `{"namespace":"ghost"}`, action: "cs:storage:read"},
	{route: "POST S/put", roles: "ad", reach: reachInstall, path: "S/put", body: "[]", action: "cs:storage:write"},
	{route: "POST S/bulkPut", roles: "ad", reach: reachInstall, path: "S/bulkPut", body: "[]", action: "cs:storage:write"},
	{route: "POST S/transact", roles: "ad", reach: reachInstall, path: "S/transact", body: `{"operations":[{"op":"delete"}]}`, action: "cs:storage:write"},
	{route: "POST S/delete", roles: "ad", reach: reachInstall, path: "S/delete", body: "[]", action: "cs:storage:delete"},
	{route: "POST /api/internal/ext-storage/install/{install}", roles: "!", reach: reachAll, path: "/api/internal/ext-storage/install/crm", body: "[]", action: ""},
}

// letters of the roles, as access has them.
var letters = map[string]string{
	"admin": "a", "developer": "d", "operator": "o", "invoker": "i", "viewer": "v", "worker": "w", "approver": "p", "role:own": "",
}

// patterns are the abbreviations of docs/api.md as the router has them.
var patterns = strings.NewReplacer(
	" T", " /v1/tenants/{tenant}",
	" N", " /v1/tenants/{tenant}/namespaces/{namespace}",
	" F", " /v1/tenants/{tenant}/namespaces/{namespace}/functions/{function}",
	" A", " /v1/tenants/{tenant}/activations/{activation_id}",
	" I", " /v1/tenants/{tenant}/installs/{install}",
	" S", " /v1/tenants/{tenant}/installs/{install}/storage",
)

// installPaths are those of an install of payments, and that of the stream of workers, whose letters
// stand for no other path.
func installPaths(tenant string) []string {
	install := "/v1/tenants/" + tenant + "/installs/fn.payments.hello"
	const stream = "/sous.worker.v1.WorkerService/Lifecycle"
	return []string{stream, stream, "S", install + "/storage", "I", install}
}

// denied is the code of a route's refusals.
func (r *row) denied() api.Code {
	if strings.HasPrefix(r.action, "cs:storage:") {
		return api.CodeStorageDenied
	}
	return api.CodeAuthzDenied
}

func TestEveryRouteIsInTheTable(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, route := range start(t).control.Routes() {
		routes = append(routes, route.Method+" "+route.Path)
	}
	slices.Sort(routes)
	var written []string
	for _, row := range accessRows {
		written = append(written, patterns.Replace(row.route))
	}
	slices.Sort(written)
	if diff := cmp.Diff(written, routes); diff != "" {
		t.Errorf("this test's table and the routes: (-want +got):\n%s", diff)
	}
}

// verdict is what a request is answered with; admitted is all that a caller gets
// who was let in.
type verdict struct {
	status int
	code   api.Code
	text   string // "" for any
}

var admitted = verdict{}

// TestWhoMayDoWhat sends every route's request with every kind of key.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	store := embedded(t)
	now := newClock()
	now.advance(2 * time.Hour) // behind which keys expire that the store still has
	_, mirrored := openMirror(t)
	k := startKeyed(t, store, onClock(now), mirrored, func(c *controlplane.Config) { c.StorageToken = runnerToken })
	k.publish(t, "payments", "hello", "{}")
	k.publish(t, "others", "hello", "{}")
	run := k.run(t, time.Now().UnixMilli())
	k.engine.cancel = func(string, string) (*api.Activation, error) { return &run.Activation, nil }
	active, cancelled := k.jobs(t)
	k.addTask(t)
	operator, _ := k.key(t, api.RoleOperator)
	operation := ok[search.Bulk](t, k.as(t, operator, "POST", "/v1/tenants/"+k.tenant+"/bulk", `{"operation":"retry","selection":{"namespace":"payments"}}`), 202).ID
	foreign := storagetest.Tenant(t)
	paths := strings.NewReplacer(append(installPaths(k.tenant),
		"T", "/v1/tenants/"+k.tenant, "N", "/v1/tenants/"+k.tenant+"/namespaces/payments",
		"F", k.fn(""), "A", "/v1/tenants/"+k.tenant+"/activations/"+run.ActivationID, "J", active, "C", cancelled, "B", operation,
	)...)
	at := func(in time.Duration) int64 { return now.now().Add(in).UnixMilli() }

	required := verdict{status: 401, code: api.CodeAuthnRequired, text: "this needs an API key: Authorization: Bearer <key>"}
	invalid := verdict{status: 401, code: api.CodeAuthnInvalid, text: "the API key is unknown, malformed, expired or revoked"}
	noTenant := verdict{status: 404, code: api.CodeTenantNotFound, text: fmt.Sprintf("tenant %q does not exist", k.tenant)}
	// secured is the verdict for callers without a valid key: only public routes admit them.
	secured := func(v verdict) func(row) verdict {
		return func(r row) verdict {
			if r.roles == "-" {
				return admitted
			}
			return v
		}
	}
	platform := verdict{status: 403, code: api.CodeAuthzDenied, text: "this needs a key for all tenants: only the administrator of the platform may do it"}
	byRole := func(role string) func(row) verdict {
		return func(r row) verdict {
			letter := letters[role]
			if r.reach == reachNoTenant && letter == "a" {
				return platform
			}
			if r.roles == "-" || r.roles == "*" || letter != "" && strings.Contains(r.roles, letter) {
				return admitted
			}
			return verdict{status: 403, code: r.denied(), text: "the request needs the action " + r.action + ", which the roles of the API key (" + role + ") do not grant"}
		}
	}
	stranger := func(role string) func(row) verdict {
		return func(r row) verdict {
			if r.roles == "-" || r.roles == "*" {
				return admitted
			}
			if strings.HasPrefix(r.path, "/v1/admin/") { // of no tenant
				return byRole(role)(r)
			}
			return noTenant
		}
	}
	limited := func(own string) func(row) verdict {
		return func(r row) verdict {
			only := verdict{status: 403, code: r.denied(), text: "the API key is for the namespace " + own + " only"}
			switch {
			case r.reach == reachNoTenant:
				return platform
			case r.reach == reachNothing:
				return only
			case own == "payments" || r.reach == reachAll:
				return admitted
			case r.reach == reachJob:
				id := active
				if strings.Contains(r.path, "C:") {
					id = cancelled
				}
				return verdict{status: 404, code: api.CodeJobNotFound, text: "job " + id + " does not exist"}
			case r.reach == reachBulk:
				return verdict{status: 404, code: api.CodeBulkNotFound, text: "bulk operation " + operation + " does not exist"}
			case r.reach == reachTask:
				return verdict{status: 404, code: api.CodeTaskNotFound, text: "task email-send/k1 does not exist"}
			case r.reach == reachRecord:
				return verdict{status: 404, code: api.CodeActivationNotFound, text: "activation " + run.ActivationID + " does not exist"}
			}
			return only
		}
	}
	key := func(role string, change ...func(*api.Key)) string {
		text, _ := k.key(t, role, change...)
		return text
	}
	revoked, record := k.key(t, api.RoleAdmin)
	ok[any](t, k.as(t, revoked, "GET", "/v1/limits", ""), 200)
	ok[any](t, k.as(t, revoked, "DELETE", "/v1/tenants/"+k.tenant+"/keys/"+record.ID, ""), 204)
	everything := func(row) verdict { return admitted }

	for name, tc := range map[string]struct {
		key  string
		want func(row) verdict
	}{
		"no key":              {"", secured(required)},
		"unknown":             {k.lost(t), secured(invalid)},
		"malformed":           {"x" + key("admin"), secured(invalid)},
		"cut short":           {key("admin")[:70], secured(invalid)},
		"expired":             {key("admin", until(at(-time.Hour))), secured(invalid)},
		"expired just now":    {key("admin", until(at(0))), secured(invalid)},
		"revoked":             {revoked, secured(invalid)},
		"admin":               {key("admin"), byRole("admin")},
		"developer":           {key("developer"), byRole("developer")},
		"operator":            {key("operator"), byRole("operator")},
		"invoker":             {key("invoker", until(at(time.Millisecond))), byRole("invoker")},
		"viewer":              {key("viewer"), byRole("viewer")},
		"worker":              {key("worker"), byRole("worker")},
		"a role of their own": {key("role:own"), byRole("role:own")},
		"another tenant's":    {key("admin", ofTenant(foreign)), stranger("admin")},
		"another's, too weak": {key("viewer", ofTenant(foreign)), stranger("viewer")},
		"another's, of ours":  {key("admin", ofTenant(foreign), inNamespace("payments")), stranger("admin")},
		"the right namespace": {key("admin", inNamespace("payments")), limited("payments")},
		"another namespace":   {key("admin", inNamespace("others")), limited("others")},
		"the platform's":      {key("admin", ofTenant(api.AllTenants)), everything},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, row := range accessRows {
				method, _, _ := strings.Cut(row.route, " ")
				want := tc.want(row)
				if row.roles == "!" { // none of these is the runners' token
					want = verdict{status: 401, code: api.CodeAuthnInvalid, text: "the token is not the runners'"}
					if tc.key == "" {
						want = verdict{status: 401, code: api.CodeAuthnRequired, text: "this needs the runners' token: Authorization: Bearer <token>"}
					}
				}
				a := k.as(t, tc.key, method, paths.Replace(row.path), row.body)
				k.holdsNone(t, row.route, string(a.body))
				holds(t, row.route, a, want)
				if method != http.MethodGet {
					continue
				}
				if head := k.as(t, tc.key, http.MethodHead, paths.Replace(row.path), ""); head.status != a.status {
					t.Errorf("HEAD %s: %d, and GET %d, want status %v", row.path, head.status, a.status, a.status)
				}
			}
		})
	}
}

// holds compares an answer with the expected verdict.
func holds(t *testing.T, route string, a answer, want verdict) {
	t.Helper()
	var p problem
	if a.status >= 400 && !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") { // a page for people
		if err := json.Unmarshal(a.body, &p); err != nil {
			t.Fatalf("%s: Unmarshal: got %v: %s, want no error", route, err, a.body)
		}
	}
	if want == admitted {
		switch {
		case a.status == 401, a.status == 403, a.status == 405, a.status >= 500,
			p.Code == api.CodeRouteNotFound, p.Code == api.CodeTenantNotFound, p.Code == api.CodeActivationNotFound, p.Code == api.CodeJobNotFound,
			p.Code == api.CodeTaskNotFound, p.Code == api.CodeBulkNotFound:
			t.Errorf("%s: got %d %s, want it admitted", route, a.status, a.body)
		}
		return
	}
	if got := (verdict{status: a.status, code: p.Code, text: p.Detail}); got != want {
		t.Errorf("%s: %+v, want %+v", route, got, want)
	}
	challenge := ""
	if want.status == 401 {
		challenge = `Bearer realm="sous"`
	}
	if got := a.header.Get("WWW-Authenticate"); got != challenge {
		t.Errorf("%s: WWW-Authenticate %q, want %v", route, got, challenge)
	}
}

// Without keys every caller is an administrator.
func TestWithoutKeysEverybodyMayDoEverything(t *testing.T) {
	t.Parallel()
	_, mirrored := openMirror(t)
	h := start(t, mirrored)
	h.create(t)
	h.deploy(t, "x", "")
	run := h.run(t, time.Now().UnixMilli())
	h.engine.cancel = func(string, string) (*api.Activation, error) { return &run.Activation, nil }
	active, cancelled := h.jobs(t)
	operation := ok[search.Bulk](t, h.call(t, "POST", h.at("T/bulk"), `{"operation":"retry","selection":{"namespace":"payments"}}`), 202).ID
	paths := strings.NewReplacer(append(installPaths(h.tenant),
		"T", "/v1/tenants/"+h.tenant, "N", "/v1/tenants/"+h.tenant+"/namespaces/payments",
		"F", h.fn(""), "A", "/v1/tenants/"+h.tenant+"/activations/"+run.ActivationID, "J", active, "C", cancelled, "B", operation,
	)...)
	for _, row := range accessRows {
		method, _, _ := strings.Cut(row.route, " ")
		if row.roles == "!" { // which needs its token all the same, and there is none
			h.call(t, method, paths.Replace(row.path), row.body, "Authorization", "Bearer "+runnerToken).refused(t, 404, api.CodeRouteNotFound)
			continue
		}
		holds(t, row.route, h.call(t, method, paths.Replace(row.path), row.body), admitted)
		holds(t, row.route, h.call(t, method, paths.Replace(row.path), row.body, "Authorization", "Bearer nonsense"), admitted)
	}
	h.call(t, "POST", h.fn(":invoke"), `{"ref":{"alias":"prod"}}`)
	inv := h.engine.last(t)
	if inv.Access != api.AccessUnrestricted || inv.Principal.Sub != "local" {
		t.Errorf("invoked as %+v with %v, want access unrestricted and sub \"local\"", inv.Principal, inv.Access)
	}
}
