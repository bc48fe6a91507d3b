package controlplane

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/codesous/sous/api"
)

// Action is what a request does, in the words in which roles grant it.
type Action string

// The actions.
const (
	actionPublic = Action("")        // whoever asks
	actionAnyKey = Action("any key") // whoever has a key, whatever it grants
	actionRunner = Action("runner")  // whoever has the runners' token

	actionFunctionCreate   = Action("cs:function:create")
	actionFunctionRead     = Action("cs:function:read")
	actionFunctionDelete   = Action("cs:function:delete")
	actionDraftUpload      = Action("cs:function:draft:upload")
	actionFunctionPublish  = Action("cs:function:publish")
	actionAliasSet         = Action("cs:function:alias:set")
	actionFunctionInvoke   = Action("cs:function:invoke")
	actionActivationRead   = Action("cs:activation:read")
	actionActivationCancel = Action("cs:activation:cancel")
	actionTenantRead       = Action("cs:tenant:read")
	actionKeyCreate        = Action("cs:key:create")
	actionKeyRead          = Action("cs:key:read")
	actionKeyRevoke        = Action("cs:key:revoke")
	actionAuditRead        = Action("cs:audit:read")

	actionJobEnqueue     = Action("cs:job:enqueue")
	actionJobRead        = Action("cs:job:read")
	actionJobFetch       = Action("cs:job:fetch")
	actionJobSettle      = Action("cs:job:settle")
	actionJobSteer       = Action("cs:job:steer")
	actionJobDelete      = Action("cs:job:delete")
	actionQueueRead      = Action("cs:queue:read")
	actionQueueConfigure = Action("cs:queue:configure")
	actionQueueClear     = Action("cs:queue:clear")
	actionQueueDelete    = Action("cs:queue:delete")
	actionBatchCreate    = Action("cs:batch:create")
	actionBatchRead      = Action("cs:batch:read")
	actionBatchSeal      = Action("cs:batch:seal")
	actionWorkerRead     = Action("cs:worker:read")

	actionScheduleCreate = Action("cs:schedule:create")
	actionScheduleRead   = Action("cs:schedule:read")
	actionScheduleUpdate = Action("cs:schedule:update")
	actionScheduleDelete = Action("cs:schedule:delete")
	actionScheduleRun    = Action("cs:schedule:run")

	actionTaskCreate    = Action("cs:task:create")
	actionTaskRead      = Action("cs:task:read")
	actionTaskWork      = Action("cs:task:work")
	actionTaskCancel    = Action("cs:task:cancel")
	actionStorageRead   = Action("cs:storage:read")
	actionStorageWrite  = Action("cs:storage:write")
	actionStorageDelete = Action("cs:storage:delete")
	actionStorageAdmin  = Action("cs:storage:admin")

	actionBindingCreate = Action("cs:cadence:worker:create")
	actionBindingRead   = Action("cs:cadence:worker:read")
	actionBindingUpdate = Action("cs:cadence:worker:update")
	actionBindingDelete = Action("cs:cadence:worker:delete")
	actionSecretWrite   = Action("cs:secret:write")
	actionSecretRead    = Action("cs:secret:read")
	actionSecretDelete  = Action("cs:secret:delete")
	actionSecretRewrap  = Action("cs:secret:rewrap")
)

// changes says whether the audit keeps what was done. What producers and workers
// do all the time has records of its own, as invocations have.
func (a Action) changes() bool {
	switch a {
	case actionPublic, actionAnyKey, actionRunner, actionFunctionInvoke, actionStorageWrite, actionStorageDelete,
		actionJobEnqueue, actionJobFetch, actionJobSettle, actionBatchCreate, actionBatchSeal,
		actionTaskCreate, actionTaskWork:
		return false
	}
	return !strings.HasSuffix(string(a), ":read")
}

// extent is how far into a tenant a route reaches, for keys that are limited to
// one namespace.
type extent int

const (
	// wholeTenant is closed to such keys.
	wholeTenant extent = iota
	// pathNamespace is open where {namespace} is theirs.
	pathNamespace
	// handlerNamespace is judged by the handler: the namespace stands in the query
	// or in a record, or the answer leaves out what is not theirs.
	handlerNamespace
	// noNamespace is open to them.
	noNamespace
)

// rule says who may use a route.
type rule struct {
	action Action
	extent extent
}

// rules has an entry for each route of the API, "METHOD pattern" as the router
// has it; HEAD is GET. What has none is refused. Endpoints of functions are no
// routes: see web.go.
var rules = map[string]rule{
	"GET " + pathHealthz: {actionPublic, noNamespace},
	"GET " + pathReadyz:  {actionPublic, noNamespace},
	"GET " + pathDocs:    {actionPublic, noNamespace},
	"GET " + pathOpenAPI: {actionPublic, noNamespace},
	"GET " + pathLimits:  {actionAnyKey, noNamespace},

	"GET " + pathTenant:     {actionTenantRead, noNamespace},
	"GET " + pathNamespaces: {actionTenantRead, handlerNamespace},

	"POST " + pathFunctions:            {actionFunctionCreate, pathNamespace},
	"GET " + pathFunctions:             {actionFunctionRead, pathNamespace},
	"GET " + pathFunction:              {actionFunctionRead, pathNamespace},
	"DELETE " + pathFunction:           {actionFunctionDelete, pathNamespace},
	"POST " + pathFunction + ":invoke": {actionFunctionInvoke, pathNamespace},
	"PUT " + pathDraft:                 {actionDraftUpload, pathNamespace},
	"POST " + pathVersions:             {actionFunctionPublish, pathNamespace},
	"GET " + pathVersions:              {actionFunctionRead, pathNamespace},
	"GET " + pathVersion:               {actionFunctionRead, pathNamespace},
	"GET " + pathVersion + "/bundle":   {actionFunctionRead, pathNamespace},
	"GET " + pathAliases:               {actionFunctionRead, pathNamespace},
	"GET " + pathAlias:                 {actionFunctionRead, pathNamespace},
	"PUT " + pathAlias:                 {actionAliasSet, pathNamespace},
	"DELETE " + pathAlias:              {actionAliasSet, pathNamespace},

	"GET " + pathActivations:             {actionActivationRead, handlerNamespace},
	"GET " + pathActivation:              {actionActivationRead, handlerNamespace},
	"GET " + pathActivation + "/logs":    {actionActivationRead, handlerNamespace},
	"POST " + pathActivation + ":cancel": {actionActivationCancel, handlerNamespace},

	"POST " + pathKeys:  {actionKeyCreate, wholeTenant},
	"GET " + pathKeys:   {actionKeyRead, wholeTenant},
	"GET " + pathKey:    {actionKeyRead, wholeTenant},
	"DELETE " + pathKey: {actionKeyRevoke, wholeTenant},
	"GET " + pathAudit:  {actionAuditRead, wholeTenant},

	"POST " + pathQueueJobs:           {actionJobEnqueue, pathNamespace},
	"GET " + pathQueueJobs:            {actionJobRead, pathNamespace},
	"POST " + pathJobs + ":fetch":     {actionJobFetch, handlerNamespace},
	"POST " + pathJobs + ":ack":       {actionJobSettle, handlerNamespace},
	"POST " + pathJobs + ":fail":      {actionJobSettle, handlerNamespace},
	"POST " + pathJobs + ":heartbeat": {actionJobSettle, handlerNamespace},
	"GET " + pathJob:                  {actionJobRead, handlerNamespace},
	"DELETE " + pathJob:               {actionJobDelete, handlerNamespace},
	"POST " + pathJob + ":retry":      {actionJobSteer, handlerNamespace},
	"POST " + pathJob + ":cancel":     {actionJobSteer, handlerNamespace},
	"POST " + pathJob + ":hold":       {actionJobSteer, handlerNamespace},
	"POST " + pathJob + ":approve":    {actionJobSteer, handlerNamespace},
	"POST " + pathJob + ":reject":     {actionJobSteer, handlerNamespace},
	"POST " + pathJob + ":move":       {actionJobSteer, handlerNamespace},

	"GET " + pathQueues:              {actionQueueRead, pathNamespace},
	"GET " + pathQueue:               {actionQueueRead, pathNamespace},
	"PATCH " + pathQueue:             {actionQueueConfigure, pathNamespace},
	"DELETE " + pathQueue:            {actionQueueDelete, pathNamespace},
	"POST " + pathQueue + ":clear":   {actionQueueClear, pathNamespace},
	"POST " + pathQueue + ":drain":   {actionQueueConfigure, pathNamespace},
	"POST " + pathQueue + ":resume":  {actionQueueConfigure, pathNamespace},
	"POST " + pathQueue + ":redrive": {actionJobSteer, pathNamespace},
	"POST " + pathBatches:            {actionBatchCreate, pathNamespace},
	"GET " + pathBatch:               {actionBatchRead, pathNamespace},
	"POST " + pathBatch + ":seal":    {actionBatchSeal, pathNamespace},
	"GET " + pathWorkers:             {actionWorkerRead, handlerNamespace},

	"POST " + pathSchedules:         {actionScheduleCreate, pathNamespace},
	"GET " + pathSchedules:          {actionScheduleRead, pathNamespace},
	"GET " + pathSchedule:           {actionScheduleRead, pathNamespace},
	"PATCH " + pathSchedule:         {actionScheduleUpdate, pathNamespace},
	"DELETE " + pathSchedule:        {actionScheduleDelete, pathNamespace},
	"POST " + pathSchedule + ":run": {actionScheduleRun, pathNamespace},

	"PUT " + pathTask:                {actionTaskCreate, handlerNamespace},
	"GET " + pathTask:                {actionTaskRead, handlerNamespace},
	"GET " + pathTasks:               {actionTaskRead, handlerNamespace},
	"POST " + pathTask + ":claim":    {actionTaskWork, handlerNamespace},
	"POST " + pathTask + ":step":     {actionTaskWork, handlerNamespace},
	"POST " + pathTask + ":complete": {actionTaskWork, handlerNamespace},
	"POST " + pathTask + ":fail":     {actionTaskWork, handlerNamespace},
	"POST " + pathTask + ":cancel":   {actionTaskCancel, handlerNamespace},
	"POST " + pathBindings:           {actionBindingCreate, pathNamespace},
	"GET " + pathBindings:            {actionBindingRead, pathNamespace},
	"GET " + pathBinding:             {actionBindingRead, pathNamespace},
	"PATCH " + pathBinding:           {actionBindingUpdate, pathNamespace},
	"DELETE " + pathBinding:          {actionBindingDelete, pathNamespace},

	"PUT " + pathSecret:    {actionSecretWrite, pathNamespace},
	"GET " + pathSecrets:   {actionSecretRead, pathNamespace},
	"GET " + pathSecret:    {actionSecretRead, pathNamespace},
	"DELETE " + pathSecret: {actionSecretDelete, pathNamespace},
	"POST " + pathRewrap:   {actionSecretRewrap, wholeTenant},

	"GET " + pathInstalls:               {actionStorageRead, wholeTenant},
	"GET " + pathInstall:                {actionStorageRead, handlerNamespace},
	"PUT " + pathInstall:                {actionStorageAdmin, wholeTenant},
	"DELETE " + pathInstall:             {actionStorageAdmin, handlerNamespace},
	"GET " + pathDocumentNamespaces:     {actionStorageRead, handlerNamespace},
	"GET " + pathDocumentNamespace:      {actionStorageRead, handlerNamespace},
	"DELETE " + pathDocumentNamespace:   {actionStorageAdmin, handlerNamespace},
	"GET " + pathDocumentSchema:         {actionStorageRead, handlerNamespace},
	"PUT " + pathDocumentSchema:         {actionStorageAdmin, handlerNamespace},
	"DELETE " + pathDocumentSchema:      {actionStorageAdmin, handlerNamespace},
	"GET " + pathDocumentChanges:        {actionStorageRead, handlerNamespace},
	"GET " + pathRecords:                {actionStorageRead, handlerNamespace},
	"GET " + pathRecord:                 {actionStorageRead, handlerNamespace},
	"PUT " + pathRecord:                 {actionStorageWrite, handlerNamespace},
	"DELETE " + pathRecord:              {actionStorageDelete, handlerNamespace},
	"GET " + pathStorage + "/get":       {actionStorageRead, handlerNamespace},
	"POST " + pathStorage + "/list":     {actionStorageRead, handlerNamespace},
	"POST " + pathStorage + "/put":      {actionStorageWrite, handlerNamespace},
	"POST " + pathStorage + "/bulkPut":  {actionStorageWrite, handlerNamespace},
	"POST " + pathStorage + "/transact": {actionStorageWrite, handlerNamespace},
	"POST " + pathStorage + "/delete":   {actionStorageDelete, handlerNamespace},
	"POST " + pathInternalStorage:       {actionRunner, noNamespace},
}

// roles are the actions that each built-in role grants; one that ends in * is all
// that begin so. Some have no route yet.
var roles = map[string][]Action{
	api.RoleAdmin: {"*"},
	api.RoleDeveloper: {
		"cs:function:*", "cs:schedule:*", "cs:cadence:worker:*", "cs:job:*", "cs:queue:*", "cs:batch:*", actionWorkerRead, "cs:task:*",
		"cs:storage:*", "cs:secret:*", "cs:activation:*", actionTenantRead,
	},
	api.RoleOperator: {
		actionFunctionRead, actionFunctionInvoke, actionAliasSet, "cs:schedule:*", "cs:cadence:worker:*", "cs:job:*", "cs:queue:*",
		actionBatchRead, actionWorkerRead, actionTaskRead, actionTaskCancel, actionStorageRead, "cs:secret:read", actionActivationRead, actionActivationCancel,
		actionAuditRead, actionTenantRead,
	},
	api.RoleInvoker: {actionFunctionInvoke, actionJobEnqueue, actionJobRead, actionActivationRead, actionTenantRead},
	api.RoleWorker:  {actionJobEnqueue, actionJobRead, actionJobFetch, actionJobSettle, actionTaskCreate, actionTaskRead, actionTaskWork},
	api.RoleViewer: {
		actionFunctionRead, actionScheduleRead, actionBindingRead, actionJobRead, actionQueueRead,
		actionBatchRead, actionWorkerRead, actionTaskRead, actionStorageRead, actionActivationRead, actionTenantRead,
	},
}

// granted says whether one of a key's roles grants action. A role of a tenant's
// own grants none.
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

// authorize lets those requests through whose caller may make them, before
// anything of their body is read.
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			s.fail(w, r, requestIDOf(r.Context()), err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit judges a request by its route's rule, and remembers who sent it. The
// order matters: what is another tenant's does not exist, so that nobody learns
// there from a 403 what a 404 would not have told.
func (s *Server) admit(r *http.Request) error {
	ctx := r.Context()
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rule, ok := rules[method+" "+chi.RouteContext(ctx).RoutePattern()]
	if !ok {
		return api.Errorf(api.CodeAuthzDenied, "nobody may use this route")
	}
	switch rule.action {
	case actionPublic:
		return nil
	case actionRunner:
		return s.admitRunner(r.Header)
	}
	c, err := s.auth.authenticate(ctx, r.Header)
	if err != nil {
		return err
	}
	tenant := pathParam(r, "tenant")
	if x := exchangeOf(ctx); x != nil {
		x.caller, x.action, x.tenant = c, rule.action, tenant
	}
	if tenant != "" && !c.enters(tenant) {
		if err := api.ValidateTenant(tenant); err != nil {
			return err
		}
		return tenantNotFound(tenant)
	}
	if rule.action != actionAnyKey {
		if err := c.need(rule.action); err != nil {
			return err
		}
	}
	switch rule.extent {
	case handlerNamespace, noNamespace:
		return nil
	case pathNamespace:
		return c.needNamespace(pathParam(r, "namespace"))
	}
	return c.needNamespace("") // all of them
}
