// Package httpstatus is the one place where an error code becomes an HTTP status. The
// REST API answers with these statuses; functions see them on errors of the document
// storage.
//
// To add a code: a constant in api/errors.go or api/document.go, a line in this table, a row
// in docs/errors.md. A test compares the three.
package httpstatus

import (
	"iter"
	"maps"
	"net/http"

	"github.com/codesous/sous/api"
)

// statuses holds the codes that requests are answered with, in the order of api's
// constants. The choice follows a few rules:
//
//	400  the request could not be read; the document storage also uses it for 422
//	401  the API key is missing or not valid
//	403  the caller may not do this, or its tenant may not store more
//	404  the resource does not exist, or not for this caller
//	405  the path does not have this method
//	408  the body did not arrive in time
//	409  the state of the resource, or a limit on the number of its kind, refuses the request;
//	     another request may change it. The document storage also uses it for 412
//	412  a precondition in a header does not hold
//	413, 414, 431  the body, the query or the headers are too large
//	415  the route does not accept the type of the body
//	422  the request was read and refused
//	429  a rate, a limit of concurrency, the caller's share of a replica, or a quota of
//	     documents is used up
//	500  the platform itself failed, or cannot read a stored secret
//	502  the function failed or was cancelled
//	503  the replica, the store or the DNS cannot serve the request now; repeat it
//	504  the function reached its timeout
//
// Codes that only functions or records contain have no status: CodeRuntimeCapabilityDenied,
// CodeEventExpired, and those below "Codes that a host call rejects with" in api/errors.go.
var statuses = map[api.Code]int{
	api.CodeInternal:         http.StatusInternalServerError,
	api.CodeStoreUnavailable: http.StatusServiceUnavailable,
	api.CodeStoreConflict:    http.StatusConflict,
	api.CodeShuttingDown:     http.StatusServiceUnavailable,
	api.CodeOverloaded:       http.StatusServiceUnavailable,

	api.CodeAuthnRequired:     http.StatusUnauthorized,
	api.CodeAuthnInvalid:      http.StatusUnauthorized,
	api.CodeAuthzDenied:       http.StatusForbidden,
	api.CodeHostHeaderRefused: http.StatusForbidden,
	api.CodeRouteNotFound:     http.StatusNotFound,
	api.CodeMethodNotAllowed:  http.StatusMethodNotAllowed,
	api.CodeMediaType:         http.StatusUnsupportedMediaType,
	api.CodeRequestTimeout:    http.StatusRequestTimeout,

	api.CodeInvalid:            http.StatusUnprocessableEntity,
	api.CodeValidationName:     http.StatusBadRequest,
	api.CodeValidationJSON:     http.StatusBadRequest,
	api.CodeValidationSource:   http.StatusUnprocessableEntity,
	api.CodeValidationManifest: http.StatusUnprocessableEntity,
	api.CodeValidationBundle:   http.StatusUnprocessableEntity,
	api.CodeValidationCursor:   http.StatusBadRequest,

	api.CodeFunctionNotFound:   http.StatusNotFound,
	api.CodeFunctionExists:     http.StatusConflict,
	api.CodeDraftNotFound:      http.StatusNotFound,
	api.CodeDraftExpired:       http.StatusNotFound,
	api.CodeDraftConsumed:      http.StatusConflict,
	api.CodeVersionNotFound:    http.StatusNotFound,
	api.CodeAliasNotFound:      http.StatusNotFound,
	api.CodeActivationNotFound: http.StatusNotFound,
	api.CodeTenantNotFound:     http.StatusNotFound,
	api.CodeKeyNotFound:        http.StatusNotFound,
	api.CodeKeyLimit:           http.StatusConflict,
	api.CodePreconditionFailed: http.StatusPreconditionFailed,

	api.CodeActivationTerminal:  http.StatusConflict,
	api.CodeIdempotencyRunning:  http.StatusConflict,
	api.CodeIdempotencyMismatch: http.StatusUnprocessableEntity,

	api.CodeJobNotFound:   http.StatusNotFound,
	api.CodeJobLeaseLost:  http.StatusConflict,
	api.CodeJobState:      http.StatusConflict,
	api.CodeJobResult:     http.StatusUnprocessableEntity,
	api.CodeQueueNotFound: http.StatusNotFound,
	api.CodeQueueDraining: http.StatusConflict,
	api.CodeQueueBusy:     http.StatusConflict,
	api.CodeQueueReserved: http.StatusConflict,
	api.CodeBatchNotFound: http.StatusNotFound,
	api.CodeBatchSealed:   http.StatusConflict,

	api.CodeBudgetNotFound: http.StatusNotFound,
	api.CodeBudgetExceeded: http.StatusTooManyRequests,

	api.CodeApprovalNotFound: http.StatusNotFound,
	api.CodeApprovalDenied:   http.StatusForbidden,

	api.CodeScheduleNotFound: http.StatusNotFound,
	api.CodeScheduleExists:   http.StatusConflict,
	api.CodeScheduleBusy:     http.StatusConflict,
	api.CodeScheduleLimit:    http.StatusConflict,
	api.CodeTaskNotFound:     http.StatusNotFound,
	api.CodeTaskExists:       http.StatusConflict,
	api.CodeTaskState:        http.StatusConflict,

	api.CodeBindingNotFound: http.StatusNotFound,
	api.CodeBindingExists:   http.StatusConflict,
	api.CodeBindingLimit:    http.StatusConflict,
	api.CodeTriggerNotFound: http.StatusNotFound,
	api.CodeTriggerExists:   http.StatusConflict,
	api.CodeTriggerLimit:    http.StatusConflict,

	api.CodeDomainNotFound:   http.StatusNotFound,
	api.CodeDomainReserved:   http.StatusConflict,
	api.CodeDomainTaken:      http.StatusConflict,
	api.CodeDomainUnverified: http.StatusConflict,
	api.CodeDomainLookup:     http.StatusServiceUnavailable,

	api.CodeWebhookNotFound: http.StatusNotFound,
	api.CodeWebhookExists:   http.StatusConflict,
	api.CodeWebhookLimit:    http.StatusConflict,
	api.CodeWebhookDisabled: http.StatusConflict,

	api.CodeProviderNotFound: http.StatusNotFound,
	api.CodeProviderCycle:    http.StatusUnprocessableEntity,
	api.CodeProviderLimit:    http.StatusConflict,
	api.CodeProviderUsed:     http.StatusConflict,

	api.CodeSearchSyntax:      http.StatusBadRequest,
	api.CodeSearchDeadline:    http.StatusServiceUnavailable,
	api.CodeMirrorUnavailable: http.StatusServiceUnavailable,
	api.CodeBulkNotFound:      http.StatusNotFound,
	api.CodeBulkLimit:         http.StatusConflict,
	api.CodeBulkEnded:         http.StatusConflict,

	api.CodeDeliveryNotFound: http.StatusNotFound,

	api.CodeKVNotFound:       http.StatusNotFound,
	api.CodeSecretNotFound:   http.StatusNotFound,
	api.CodeSecretLimit:      http.StatusConflict,
	api.CodeSecretKeyMissing: http.StatusConflict,
	api.CodeSecretUnreadable: http.StatusInternalServerError,

	api.CodeRevisionMismatch:   http.StatusConflict,
	api.CodeQuotaExceeded:      http.StatusTooManyRequests,
	api.CodeDocumentInvalid:    http.StatusBadRequest,
	api.CodeDocumentNotFound:   http.StatusNotFound,
	api.CodeStorageDenied:      http.StatusForbidden,
	api.CodeRateLimited:        http.StatusTooManyRequests,
	api.CodeStorageInternal:    http.StatusInternalServerError,
	api.CodeBulkPartialFailure: http.StatusConflict,

	api.CodeBodyLimit:        http.StatusRequestEntityTooLarge,
	api.CodeHeaderLimit:      http.StatusRequestHeaderFieldsTooLarge,
	api.CodeQueryLimit:       http.StatusRequestURITooLong,
	api.CodeConcurrencyLimit: http.StatusTooManyRequests,
	api.CodeTenantQuota:      http.StatusForbidden,
	api.CodeTenantRate:       http.StatusTooManyRequests,
	api.CodeCapacityLimit:    http.StatusTooManyRequests,

	api.CodeRuntimeException:      http.StatusBadGateway,
	api.CodeRuntimeTimeout:        http.StatusGatewayTimeout,
	api.CodeRuntimeMemoryLimit:    http.StatusBadGateway,
	api.CodeRuntimeCPULimit:       http.StatusBadGateway,
	api.CodeRuntimeResultTooLarge: http.StatusBadGateway,
	api.CodeRuntimeCancelled:      http.StatusBadGateway,
}

// Of returns the HTTP status of a code: 500 for a code that is not in the table.
func Of(code api.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// All returns the table, in no order.
func All() iter.Seq2[api.Code, int] { return maps.All(statuses) }
