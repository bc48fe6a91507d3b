package controlplane

import (
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
)

// writeJSON answers 200 with v.
func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	s.writeJSONStatus(w, r, http.StatusOK, v)
}

// writeJSONStatus answers with v under a status.
func (s *Server) writeJSONStatus(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := encodeLine(v)
	if err != nil {
		s.fail(w, r, requestIDOf(r.Context()), err)
		return
	}
	s.writeBody(w, r, status, body)
}

// writeBody answers with JSON and says whether it has left: what is lost behind
// us nobody knows.
func (s *Server) writeBody(w http.ResponseWriter, r *http.Request, status int, body []byte) bool {
	h := w.Header()
	h.Set("Content-Type", contentTypeJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("an answer was not delivered", zap.String("request_id", requestIDOf(r.Context())), zap.Error(err))
		return false
	}
	return true
}

// encodeLine is api.EncodeJSON on a line that ends as lines do.
func encodeLine(v any) ([]byte, error) {
	b, err := api.EncodeJSON(v)
	return append(b, '\n'), err
}
