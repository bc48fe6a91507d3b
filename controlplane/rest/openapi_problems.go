package rest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
)

// The document's keys for the answers of statuses that an operation does not list one by one.
const (
	statusClientErrors = "4XX"
	statusOthers       = "default"
)

// exampleRequestID is the request id in the examples of problems.
const exampleRequestID = "req_01M7ZBPKNXHSGMWVY24PRT2QCX"

// A problemAnswer is an answer that operations share: a problem with an example.
type problemAnswer struct {
	status      string
	description string
	example     *api.Error
}

func problemAnswers() []problemAnswer {
	return []problemAnswer{
		{"400", "A name in the path or the body cannot be read.", api.Errorf(api.CodeValidationJSON, "the body cannot be read: unexpected end of JSON input")},
		{"401", "The key is missing, unknown, expired or revoked.", api.Errorf(api.CodeAuthnRequired, "an API key is required: Authorization: Bearer <key>")},
		{"403", "No role of the key grants the action.", api.Errorf(api.CodeAuthzDenied, "the key has no role that grants cs:function:create")},
		{"404", "The resource does not exist, or not for this caller.", api.Errorf(api.CodeFunctionNotFound, "function default/greet does not exist")},
		{"413", "The body is too large.", api.Errorf(api.CodeBodyLimit, "the body has more than 24 MiB")},
		{"415", "The body has another content type than the operation reads.", api.Errorf(api.CodeMediaType, "the body must be application/json")},
		{"422", "The request was read and refused.", api.Errorf(api.CodeInvalid, "limit: expected number <= 500").
			WithFields(api.FieldError{Path: "limit", Message: "expected number <= 500"})},
		{statusClientErrors, "The request is refused for a reason that docs/errors.md lists: a conflict, a precondition, a limit.", api.Errorf(api.CodeFunctionExists, "function default/greet exists")},
		{statusOthers, "The server or the function failed.", api.Errorf(api.CodeStoreUnavailable, "the store does not answer")},
	}
}

// problemComponent returns the name of the component for the answers of a status.
func problemComponent(status string) string { return "Problem-" + status }

// problemResponses describes the error answers that operations share. The examples are
// problems as the server makes them.
func problemResponses(registry huma.Registry) map[string]*huma.Response {
	responses := map[string]*huma.Response{}
	for _, answer := range problemAnswers() {
		media := content(registry, Content{ContentTypeProblem: Problem{}})
		media[ContentTypeProblem].Example = newProblem(answer.example, exampleRequestID)
		response := &huma.Response{Description: answer.description, Content: media}
		if answer.status == strconv.Itoa(http.StatusUnauthorized) {
			response.Headers = map[string]*huma.Param{"WWW-Authenticate": {
				Description: "The scheme of authentication", Schema: &huma.Schema{Type: huma.TypeString},
			}}
		}
		responses[problemComponent(answer.status)] = response
	}
	return responses
}

// declareProblems adds to an operation the errors that follow from its route, which is nil
// for the endpoints of functions, and its body. The statuses of conflicts, preconditions and
// limits are declared as a range.
func declareProblems(op *huma.Operation, route *Route) {
	statuses := []string{statusOthers, statusClientErrors}
	if route == nil || route.Action != access.Public {
		statuses = append(statuses, "401", "403")
	}
	if strings.Contains(op.Path, "{") {
		statuses = append(statuses, "400", "404")
	}
	if route != nil {
		statuses = append(statuses, "422")
	}
	if op.RequestBody != nil {
		statuses = append(statuses, "400", "413", "415")
	}
	for _, status := range statuses {
		// huma declares errors of its own as the default.
		if op.Responses[status] == nil || status == statusOthers {
			op.Responses[status] = &huma.Response{Ref: "#/components/responses/" + problemComponent(status)}
		}
	}
}
