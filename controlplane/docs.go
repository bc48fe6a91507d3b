package controlplane

import (
	"net/http"

	"go.uber.org/zap"
)

// openapiDocument serves the OpenAPI 3.1 document.
func (s *Server) openapiDocument(w http.ResponseWriter, r *http.Request) {
	s.writePage(w, r, "application/openapi+json", s.openapi)
}

// docs serves the readable page.
func (s *Server) docs(w http.ResponseWriter, r *http.Request) {
	s.writePage(w, r, "text/html; charset=utf-8", nil)
}

func (s *Server) writePage(w http.ResponseWriter, r *http.Request, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	if _, err := w.Write(body); err != nil {
		s.log.Debug("a page was not delivered", zap.String("request_id", requestIDOf(r.Context())), zap.Error(err))
	}
}
