package web

import (
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpguts"

	"github.com/codesous/sous/api"
)

// streamHead returns the response of an answer that is streamed, without its body. Errors:
// CodeRuntimeException for headers that HTTP cannot carry.
func streamHead(s api.Stream) (response, error) {
	status, headers := s.Head()
	answer := response{status: status, header: http.Header{}}
	for _, h := range headers {
		if !httpguts.ValidHeaderFieldName(h[0]) {
			return response{}, malformed("headers has a name that is no header name")
		}
		name := http.CanonicalHeaderKey(h[0])
		// The length of the answer is not known before its end.
		if name == "Content-Length" || isConnectionHeader(name) {
			continue
		}
		if err := answer.add(name, h[1:]); err != nil {
			return response{}, err
		}
	}
	return answer, nil
}

// failureGrace is the time that a client has to read what was produced before a failure. A
// deadline in the past would reset an HTTP/2 stream before its head is sent.
const failureGrace = time.Second

// stream sends an answer as it is produced. It flushes after each chunk behind which no other
// waits, so that neither the server nor the compressor holds it back. An answer that is not
// complete ends in a cut connection, or in a reset of its HTTP/2 stream, so that no client
// takes it for complete.
func (a *API) stream(w http.ResponseWriter, r *http.Request, requestID string, head *response, s api.Stream) error {
	control := http.NewResponseController(w)
	// A client that does not read would keep the end of the function from being noticed.
	s.OnFailure(func() { _ = control.SetWriteDeadline(time.Now().Add(failureGrace)) })
	defer s.OnFailure(nil) // net/http's writer must not be used after the handler
	body := a.newStreamWriter(w, r, head.status)
	defer body.release()
	w.WriteHeader(head.status)
	err := control.Flush()
	for err == nil {
		var chunk []byte
		var more bool
		chunk, more, err = s.Next(r.Context())
		if err != nil {
			break
		}
		_, err = body.Write(chunk)
		if err == nil && !more {
			err = errors.Join(body.Flush(), control.Flush())
		}
	}
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = body.Close()
		if err == nil {
			return nil
		}
	}
	a.cfg.Logger.Debug("a streamed answer was not completed", zap.String("request_id", requestID), zap.Error(err))
	panic(http.ErrAbortHandler)
}
