package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/invoker/sandbox/wire/network"
)

// Limits of the headers and cookies that a function sets, those of a streamed answer. maxHead bounds
// their JSON, and their names and values as HTTP sends them.
const (
	maxHeaders = network.MaxFetchHeaders
	maxHead    = wire.MaxHead
)

// response is a function's answer to its HTTP endpoint. Header names are canonical.
type response struct {
	status      int
	header      http.Header // nil for none
	head        int         // bytes of header, as the function set it
	headers     int         // values of header
	contentType string      // of a body that has no header; "" for none
	body        []byte
}

// respond returns the endpoint's answer for a terminal activation; mapped is that of its
// result, if it is known. Errors are the
// function's: CodeRuntimeException, CodeRuntimeMemoryLimit, CodeRuntimeTimeout,
// CodeRuntimeResultTooLarge, CodeRuntimeCancelled. They contain the type of the
// failure, and its text under Config.ShowErrors only: the endpoint may be public, and the
// text is for the function's owner, who finds it in the activation and its log.
func (w *API) respond(outcome *api.Outcome, mapped *response) (response, error) {
	a := &outcome.Activation
	switch a.Status {
	case api.StatusSuccess:
	case api.StatusTimeout:
		return response{}, api.Errorf(api.CodeRuntimeTimeout, "the function did not answer within %s", api.DurationText(a.DeadlineMS-a.StartMS))
	case api.StatusCancelled:
		return response{}, api.Errorf(api.CodeRuntimeCancelled, "the activation was cancelled")
	default:
		return response{}, w.failure(a)
	}
	if a.ResultTruncated {
		return response{}, api.Errorf(api.CodeRuntimeResultTooLarge,
			"this repeats an answer of which only the first %d KiB were kept", api.MaxStoredResultBytes>>10)
	}
	if mapped != nil {
		return *mapped, nil
	}
	return mapResult(a.Result)
}

// failure returns the error of a function that failed, with the type of its error.
func (w *API) failure(a *api.Activation) error {
	failed := api.ActivationError{Type: api.ErrException}
	if a.Error != nil {
		failed = *a.Error
	}
	if w.cfg.ShowErrors {
		return api.Errorf(a.FailureCode(), "the function failed (%s): %s", failed.Type, failed.Message)
	}
	return api.Errorf(a.FailureCode(), "the function failed (%s); the log of activation %s has the error", failed.Type, a.ActivationID)
}

// mapResult returns a result as a response: an object with a statusCode is a response
// itself, undefined is a 204, and any other value is the body of a 200.
//
//	return undefined                                       204
//	return {ok: true}                                      200 application/json {"ok":true}
//	return {statusCode: 302, headers: {location: "/x"}}    302, no body
//	return {statusCode: 200, body: "aGk=", isBase64Encoded: true}
//	                                                       200 application/octet-stream hi
//	return {statusCode: "200"}                             502 CS_RUNTIME_EXCEPTION
func mapResult(result json.RawMessage) (response, error) {
	if len(result) == 0 {
		return response{status: http.StatusNoContent}, nil
	}
	// Most results that are no response objects are recognized without parsing.
	if result[0] == '{' && bytes.Contains(result, []byte(`"statusCode"`)) {
		var object responseObject
		if !members(result, object.set) {
			return response{}, malformed("the result is not JSON")
		}
		if object.status != nil {
			return mapObject(&object)
		}
	}
	return response{status: http.StatusOK, contentType: rest.ContentTypeJSON, body: result}, nil
}

// responseObject has the members of a response object; one that is absent is nil.
type responseObject struct{ status, headers, cookies, body, encoded json.RawMessage }

// set sets a member. The last one of a name prevails, and other members are ignored. It returns true,
// as a visitor of members.
func (o *responseObject) set(name string, value json.RawMessage) bool {
	switch name {
	case "statusCode":
		o.status = value
	case "headers":
		o.headers = value
	case "cookies":
		o.cookies = value
	case "body":
		o.body = value
	case "isBase64Encoded":
		o.encoded = value
	}
	return true
}

// mapObject decodes the fields of a response object. A field of the wrong type fails
// the request: a guess would hide the mistake. The body may be a part of the object.
func mapObject(object *responseObject) (response, error) {
	status, err := strconv.Atoi(string(object.status))
	if err != nil || status < 100 || status > 599 {
		return response{}, malformed("statusCode must be an integer from 100 to 599")
	}
	if status < 200 {
		// HTTP has no final status of class 1xx: the client would wait.
		return response{}, malformed("a statusCode below 200 cannot end a request")
	}
	answer := response{status: status, header: http.Header{}}
	if err := answer.setHeaders(object.headers, object.cookies); err != nil {
		return response{}, err
	}
	if err := answer.setBody(object.body, object.encoded); err != nil {
		return response{}, err
	}
	return answer, nil
}

// setHeaders sets headers and Set-Cookie from the fields headers and cookies. Headers of the
// connection are dropped silently; names and values that HTTP cannot carry are refused.
//
// The JSON is measured before it is decoded: it may have millions of values. add counts again, since
// each value of a list repeats the name on the wire.
func (r *response) setHeaders(rawHeaders, rawCookies json.RawMessage) error {
	if len(rawHeaders)+len(rawCookies) > maxHead {
		return errHeadBytes()
	}
	if entries(rawHeaders, maxHeaders)+entries(rawCookies, maxHeaders) > maxHeaders {
		return errHeaders()
	}
	var headers map[string]headerValues
	if err := decodeField(rawHeaders, &headers); err != nil {
		return malformed("headers must map names to strings or lists of strings")
	}
	for name, values := range headers {
		if !httpguts.ValidHeaderFieldName(name) {
			return malformed("headers has a name that is no header name")
		}
		canonical := http.CanonicalHeaderKey(name)
		if isConnectionHeader(canonical) {
			continue
		}
		if err := r.add(canonical, values); err != nil {
			return err
		}
	}
	var cookies []string
	if err := decodeField(rawCookies, &cookies); err != nil {
		return malformed("cookies must be a list of strings")
	}
	return r.add("Set-Cookie", cookies)
}

// add appends values to a header. A line break in a value would begin another header: such
// values are refused, as are those beyond the limits.
func (r *response) add(name string, values []string) error {
	for _, value := range values {
		r.headers++
		r.head += len(name) + len(": ") + len(value) + len("\r\n")
		switch {
		case r.headers > maxHeaders:
			return errHeaders()
		case r.head > maxHead:
			return errHeadBytes()
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return malformed("the header " + name + " has a value that HTTP cannot carry")
		}
		r.header[name] = append(r.header[name], value)
	}
	return nil
}

func errHeaders() error {
	return malformed("it has more than " + strconv.Itoa(maxHeaders) + " headers and cookies")
}

func errHeadBytes() error {
	return malformed("its headers and cookies exceed " + api.SizeText(maxHead))
}

// size returns the bytes that the answer holds until the client has read it.
func (r *response) size() int {
	size := len(r.body)
	for name, values := range r.header {
		for _, value := range values {
			size += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return size
}

// isConnectionHeader reports whether a header describes the connection. Only the server
// may set these.
func isConnectionHeader(canonical string) bool {
	switch canonical {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// setBody sets the body, decoded if isBase64Encoded is true, and the Content-Type where the
// function sets none: application/octet-stream for a decoded body, else application/json.
func (r *response) setBody(rawBody, rawEncoded json.RawMessage) error {
	var encoded bool
	if err := decodeField(rawEncoded, &encoded); err != nil {
		return malformed("isBase64Encoded must be a boolean")
	}
	if len(rawBody) == 0 || string(rawBody) == "null" {
		return nil
	}
	body, ok := text(rawBody)
	if !ok {
		return malformed("body must be a string")
	}
	contentType := rest.ContentTypeJSON // as AWS Lambda does without a Content-Type
	if encoded {
		contentType = "application/octet-stream"
		decoded := make([]byte, base64.StdEncoding.DecodedLen(len(body)))
		n, err := base64.StdEncoding.Decode(decoded, body)
		if err != nil {
			return malformed("body is not base64, but isBase64Encoded is set")
		}
		body = decoded[:n]
	}
	r.body = body
	if _, set := r.header["Content-Type"]; !set && len(r.body) > 0 {
		r.header["Content-Type"] = []string{contentType}
	}
	return nil
}

// write sends the response. It calls undelivered with the error if it could not be
// sent; the run has happened all the same. A 204, 205 or 304 has no body, whatever the
// function returned; a 204 or 304 has no Content-Length either.
func (r *response) write(w http.ResponseWriter, method string, undelivered func(error)) {
	h := w.Header()
	bodyless := method == http.MethodHead
	switch {
	case r.status == http.StatusNoContent || r.status == http.StatusNotModified:
		bodyless = true
		delete(h, "Content-Length")
	case r.status == http.StatusResetContent:
		bodyless = true
		h["Content-Length"] = []string{"0"}
	case method == http.MethodHead && len(r.body) == 0 && isLength(h["Content-Length"]):
		// The function states the length of its answer to a GET.
	default:
		h["Content-Length"] = []string{strconv.Itoa(len(r.body))}
	}
	w.WriteHeader(r.status)
	if bodyless {
		return
	}
	if _, err := w.Write(r.body); err != nil {
		undelivered(err)
	}
}

// isLength reports whether the values of a Content-Length are one number: several, or other text,
// would let two readers of one connection disagree about where an answer ends.
func isLength(values []string) bool {
	if len(values) != 1 {
		return false
	}
	_, err := strconv.ParseUint(values[0], 10, 63)
	return err == nil
}

// headerValues is a string or a list of strings.
type headerValues []string

// UnmarshalJSON decodes either form.
func (v *headerValues) UnmarshalJSON(raw []byte) error {
	if strings.HasPrefix(string(raw), "[") {
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		*v = list
		return nil
	}
	var one string
	if string(raw) == "null" {
		return malformed("null is no header value")
	}
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	*v = headerValues{one}
	return nil
}

// decodeField decodes a field that may be absent or null.
func decodeField(raw json.RawMessage, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// malformed returns the CodeRuntimeException for a result that is not a response.
func malformed(why string) error {
	return api.Errorf(api.CodeRuntimeException, "the function's response is malformed: %s", why)
}
