package api

import (
	"errors"
	"fmt"
	"time"
)

// Code is the stable name of a kind of failure. Clients match on it; the message beside
// it is for people. Package api/httpstatus maps each code to its HTTP status.
type Code string

// The codes, by family. docs/errors.md describes each and lists its HTTP status.
const (
	CodeInternal         Code = "CS_INTERNAL"
	CodeStoreUnavailable Code = "CS_STORE_UNAVAILABLE"
	CodeStoreConflict    Code = "CS_STORE_CONFLICT"
	CodeShuttingDown     Code = "CS_SHUTTING_DOWN"
	CodeOverloaded       Code = "CS_OVERLOADED"

	CodeAuthnRequired     Code = "CS_AUTHN_REQUIRED"
	CodeAuthnInvalid      Code = "CS_AUTHN_INVALID"
	CodeAuthzDenied       Code = "CS_AUTHZ_DENIED"
	CodeHostHeaderRefused Code = "CS_AUTHZ_HOST_REFUSED"
	CodeRouteNotFound     Code = "CS_ROUTE_NOT_FOUND"
	CodeMethodNotAllowed  Code = "CS_METHOD_NOT_ALLOWED"
	CodeMediaType         Code = "CS_MEDIA_TYPE_UNSUPPORTED"
	CodeRequestTimeout    Code = "CS_REQUEST_TIMEOUT"

	CodeInvalid            Code = "CS_VALIDATION_FAILED"
	CodeValidationName     Code = "CS_VALIDATION_NAME"
	CodeValidationJSON     Code = "CS_VALIDATION_JSON"
	CodeValidationSource   Code = "CS_VALIDATION_SOURCE"
	CodeValidationManifest Code = "CS_VALIDATION_MANIFEST"
	CodeValidationBundle   Code = "CS_VALIDATION_BUNDLE"
	CodeValidationCursor   Code = "CS_VALIDATION_CURSOR"

	CodeFunctionNotFound   Code = "CS_FUNCTION_NOT_FOUND"
	CodeFunctionExists     Code = "CS_FUNCTION_EXISTS"
	CodeDraftNotFound      Code = "CS_DRAFT_NOT_FOUND"
	CodeDraftExpired       Code = "CS_DRAFT_EXPIRED"
	CodeDraftConsumed      Code = "CS_DRAFT_CONSUMED_CONFLICT"
	CodeVersionNotFound    Code = "CS_VERSION_NOT_FOUND"
	CodeAliasNotFound      Code = "CS_ALIAS_NOT_FOUND"
	CodeActivationNotFound Code = "CS_ACTIVATION_NOT_FOUND"
	CodeTenantNotFound     Code = "CS_TENANT_NOT_FOUND"
	CodeKeyNotFound        Code = "CS_KEY_NOT_FOUND"
	CodeKeyLimit           Code = "CS_KEY_LIMIT_CONFLICT"
	CodePreconditionFailed Code = "CS_PRECONDITION_FAILED"

	CodeActivationTerminal  Code = "CS_ACTIVATION_TERMINAL_CONFLICT"
	CodeEventExpired        Code = "CS_EVENT_EXPIRED"
	CodeIdempotencyRunning  Code = "CS_IDEMPOTENCY_RUNNING_CONFLICT"
	CodeIdempotencyMismatch Code = "CS_VALIDATION_IDEMPOTENCY_MISMATCH"

	CodeJobNotFound   Code = "CS_JOB_NOT_FOUND"
	CodeJobLeaseLost  Code = "CS_JOB_LEASE_LOST"
	CodeJobState      Code = "CS_JOB_STATE_CONFLICT"
	CodeJobResult     Code = "CS_VALIDATION_JOB_RESULT"
	CodeQueueNotFound Code = "CS_QUEUE_NOT_FOUND"
	CodeQueueDraining Code = "CS_QUEUE_DRAINING_CONFLICT"
	CodeQueueBusy     Code = "CS_QUEUE_BUSY_CONFLICT"
	CodeQueueReserved Code = "CS_QUEUE_RESERVED_CONFLICT"
	CodeBatchNotFound Code = "CS_BATCH_NOT_FOUND"
	CodeBatchSealed   Code = "CS_BATCH_SEALED_CONFLICT"

	CodeBudgetNotFound Code = "CS_BUDGET_NOT_FOUND"
	CodeBudgetExceeded Code = "CS_BUDGET_EXCEEDED"

	CodeApprovalNotFound Code = "CS_APPROVAL_NOT_FOUND"
	CodeApprovalDenied   Code = "CS_APPROVAL_DENIED"

	CodeScheduleNotFound Code = "CS_SCHEDULE_NOT_FOUND"
	CodeScheduleExists   Code = "CS_SCHEDULE_EXISTS"
	CodeScheduleBusy     Code = "CS_SCHEDULE_BUSY_CONFLICT"
	CodeScheduleLimit    Code = "CS_SCHEDULE_LIMIT_CONFLICT"
	CodeTaskNotFound     Code = "CS_TASK_NOT_FOUND"
	CodeTaskExists       Code = "CS_TASK_EXISTS"
	CodeTaskState        Code = "CS_TASK_STATE_CONFLICT"

	CodeBindingNotFound  Code = "CS_WORKER_NOT_FOUND"
	CodeBindingExists    Code = "CS_WORKER_EXISTS"
	CodeBindingLimit     Code = "CS_WORKER_LIMIT_CONFLICT"
	CodeTriggerNotFound  Code = "CS_TRIGGER_NOT_FOUND"
	CodeTriggerExists    Code = "CS_TRIGGER_EXISTS"
	CodeTriggerLimit     Code = "CS_TRIGGER_LIMIT_CONFLICT"
	CodeDomainNotFound   Code = "CS_DOMAIN_NOT_FOUND"
	CodeDomainReserved   Code = "CS_DOMAIN_RESERVED_CONFLICT"
	CodeDomainTaken      Code = "CS_DOMAIN_TAKEN_CONFLICT"
	CodeDomainUnverified Code = "CS_DOMAIN_UNVERIFIED_CONFLICT"
	CodeDomainLookup     Code = "CS_DOMAIN_LOOKUP_FAILED"

	CodeWebhookNotFound  Code = "CS_WEBHOOK_NOT_FOUND"
	CodeWebhookExists    Code = "CS_WEBHOOK_EXISTS"
	CodeWebhookLimit     Code = "CS_WEBHOOK_LIMIT_CONFLICT"
	CodeWebhookDisabled  Code = "CS_WEBHOOK_DISABLED_CONFLICT"
	CodeDeliveryNotFound Code = "CS_WEBHOOK_DELIVERY_NOT_FOUND"

	CodeProviderNotFound Code = "CS_PROVIDER_NOT_FOUND"
	CodeProviderCycle    Code = "CS_VALIDATION_PROVIDER_CYCLE"
	CodeProviderLimit    Code = "CS_PROVIDER_LIMIT_CONFLICT"
	CodeProviderUsed     Code = "CS_PROVIDER_USED_CONFLICT"
	CodeKVNotFound       Code = "CS_KV_NOT_FOUND"

	CodeSearchSyntax      Code = "CS_VALIDATION_SEARCH"
	CodeSearchDeadline    Code = "CS_SEARCH_DEADLINE"
	CodeMirrorUnavailable Code = "CS_MIRROR_UNAVAILABLE"
	CodeBulkNotFound      Code = "CS_BULK_NOT_FOUND"
	CodeBulkLimit         Code = "CS_BULK_LIMIT_CONFLICT"
	CodeBulkEnded         Code = "CS_BULK_ENDED_CONFLICT"

	CodeSecretNotFound   Code = "CS_SECRET_NOT_FOUND"
	CodeSecretLimit      Code = "CS_SECRET_LIMIT_CONFLICT"
	CodeSecretKeyMissing Code = "CS_SECRET_KEY_MISSING"
	CodeSecretUnreadable Code = "CS_SECRET_UNREADABLE"

	CodeBodyLimit        Code = "CS_BODY_LIMIT"
	CodeHeaderLimit      Code = "CS_HEADER_LIMIT"
	CodeQueryLimit       Code = "CS_QUERY_LIMIT"
	CodeConcurrencyLimit Code = "CS_CONCURRENCY_LIMIT"
	CodeTenantQuota      Code = "CS_QUOTA_EXCEEDED"
	CodeTenantRate       Code = "CS_QUOTA_RATE_LIMIT"
	CodeCapacityLimit    Code = "CS_CAPACITY_LIMIT"

	CodeRuntimeException        Code = "CS_RUNTIME_EXCEPTION"
	CodeRuntimeTimeout          Code = "CS_RUNTIME_TIMEOUT"
	CodeRuntimeMemoryLimit      Code = "CS_RUNTIME_MEMORY_LIMIT"
	CodeRuntimeCPULimit         Code = "CS_RUNTIME_CPU_LIMIT"
	CodeRuntimeResultTooLarge   Code = "CS_RUNTIME_RESULT_TOO_LARGE"
	CodeRuntimeCapabilityDenied Code = "CS_RUNTIME_CAPABILITY_DENIED"
	CodeRuntimeCancelled        Code = "CS_RUNTIME_CANCELLED"

	// Codes that a host call rejects with, inside a function.
	CodeHostInvalidArgument Code = "CS_RUNTIME_INVALID_ARGUMENT"
	CodeHostFetchBlocked    Code = "CS_RUNTIME_FETCH_BLOCKED"
	CodeHostFetchFailed     Code = "CS_RUNTIME_FETCH_FAILED"
	CodeHostFetchTimeout    Code = "CS_RUNTIME_FETCH_TIMEOUT"

	CodeHostSecretNotFound    Code = "CS_RUNTIME_SECRET_NOT_FOUND"
	CodeHostSecretUnavailable Code = "CS_RUNTIME_SECRET_UNAVAILABLE"

	CodeHostInvokeDepth Code = "CS_RUNTIME_INVOKE_DEPTH"
	CodeHostInvokeCycle Code = "CS_RUNTIME_INVOKE_CYCLE"

	CodeHostStepUnavailable Code = "CS_RUNTIME_STEP_UNAVAILABLE"
	CodeHostStepOrder       Code = "CS_RUNTIME_STEP_ORDER"
	CodeHostStepLimit       Code = "CS_RUNTIME_STEP_LIMIT"
	CodeHostStepFailed      Code = "CS_RUNTIME_STEP_FAILED"
	CodeHostStepTimeout     Code = "CS_RUNTIME_STEP_TIMEOUT"

	CodeHostCadenceUnavailable Code = "CS_RUNTIME_CADENCE_UNAVAILABLE"
	CodeHostCadenceRefused     Code = "CS_RUNTIME_CADENCE_REFUSED"
	CodeHostWorkflowExists     Code = "CS_RUNTIME_WORKFLOW_EXISTS"
	CodeHostWorkflowNotFound   Code = "CS_RUNTIME_WORKFLOW_NOT_FOUND"

	CodeHostAIProviderNotFound Code = "CS_RUNTIME_AI_PROVIDER_NOT_FOUND"
	CodeHostAIFailed           Code = "CS_RUNTIME_AI_FAILED"
	CodeHostAIRateLimited      Code = "CS_RUNTIME_AI_RATE_LIMITED"
	CodeHostAIUnavailable      Code = "CS_RUNTIME_AI_UNAVAILABLE"
)

// FieldError names one offending part of a request: the JSON path of a field, or the
// file, line and column of source text. Line and Column count from 1; 0 means none. Excerpt is
// the line of source and below it a caret under the column, "" if there is none.
//
//	{"path": "config.env", "message": "names and values together exceed 32 KiB"}
//	{"path": "function.js", "message": "unexpected token", "line": 3, "column": 7, "excerpt": "let = 1;\n    ^"}
type FieldError struct {
	Path    string `json:"path"`
	Message string `json:"message"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Excerpt string `json:"excerpt,omitempty" doc:"the line of source, and below it a caret under the column"`
}

// Error is a failure with a stable code. Message and the exported fields are shown to the
// caller; the cause is only logged. A RetryAfter that is not zero becomes the Retry-After
// header. Use errors.As or ErrorCode to inspect an error, never its text. An *Error is not
// changed after it was returned.
type Error struct {
	Code       Code
	Message    string
	Fields     []FieldError
	RetryAfter time.Duration
	Items      []ItemError // the failed items of a request with several
	Quota      *QuotaUse   // the exceeded quota, for CodeQuotaExceeded, CodeTenantQuota and CodeTenantRate
	cause      error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause of the error, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Errorf returns an error with the code. Its message is shown to callers, so it must not
// contain the text of another error. A %w in format is not supported; use Wrap.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidField returns the CodeInvalid error of one field: path names the field, rule
// states what the field must be.
func InvalidField(path, rule string) *Error {
	return Errorf(CodeInvalid, "%s %s", path, rule).WithFields(FieldError{Path: path, Message: rule})
}

// Wrap returns an error with the code that keeps its cause for the log. Callers see
// only message.
func Wrap(code Code, cause error, message string) *Error {
	return &Error{Code: code, Message: message, cause: cause}
}

// WithFields adds offending fields to e and returns e. It is meant for an error that was
// just made.
func (e *Error) WithFields(fields ...FieldError) *Error {
	e.Fields = append(e.Fields, fields...)
	return e
}

// ErrorCode returns the code of the first *Error in err's chain: CodeInternal if it has
// none, "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
