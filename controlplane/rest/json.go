package rest

import (
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// WriteJSON answers with v under a status. An error means that v could not be encoded, or that
// the caller of a GET holds too many bytes of answers (HoldAnswer), and that nothing was written.
func WriteJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	body, err := encodeLine(v)
	if err != nil {
		return err
	}
	// What a request has done stays done: only answers of reads are refused.
	if r.Method == http.MethodGet {
		if err := HoldAnswer(w, len(body)); err != nil {
			return err
		}
	}
	WriteBody(w, r, status, body)
	return nil
}

// WriteBody answers with a body of JSON and reports whether the server sent it. The
// client may still not have received it.
func WriteBody(w http.ResponseWriter, r *http.Request, status int, body []byte) bool {
	h := w.Header()
	h.Set("Content-Type", ContentTypeJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		if x := exchangeOf(r.Context()); x != nil {
			x.server.log.Debug("an answer was not delivered", zap.String("request_id", x.requestID), zap.Error(err))
		}
		return false
	}
	return true
}

// encodeLine returns v as JSON with a line break at its end.
func encodeLine(v any) ([]byte, error) {
	b, err := api.EncodeJSON(v)
	return append(b, '\n'), err
}
