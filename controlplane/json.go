package controlplane

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"go.uber.org/zap"
)

// writeJSON answers 200 with v.
func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	body, err := encodeLine(v)
	if err != nil {
		s.fail(w, r, requestIDOf(r.Context()), err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentTypeJSON)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("an answer was not delivered", zap.String("request_id", requestIDOf(r.Context())), zap.Error(err))
	}
}

// encodeLine writes v as it goes out in answers, on one line that ends as lines
// do. Unlike json.Marshal it leaves <, > and & alone: a result is answered as it
// was returned, and answers are no part of a page.
func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return b.Bytes(), err
}

// encodeJSON is encodeLine without the line's end.
func encodeJSON(v any) ([]byte, error) {
	b, err := encodeLine(v)
	return bytes.TrimSuffix(b, []byte{'\n'}), err
}
