package web

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/controlplane/rest"
)

// Bounds of the compression of answers.
const (
	// minGzipBytes is the smallest body that is compressed: a smaller one fits into a packet.
	minGzipBytes = 1 << 10
	// maxGzipStreams bounds the memory of compressors, about 0.8 MB each, that wait for the
	// next chunk of a streamed answer. Further streams are sent as they are.
	maxGzipStreams = 128
)

// gzippers holds compressors that are not in use. Their level is the fastest: the server pays
// for the compression, not the function.
var gzippers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	return w
}}

// offersGzip reports whether an answer of that status may be sent compressed, to a client that
// accepts it. Answers that the function has encoded, parts of resources, and media types that
// are compressed already are not changed, nor any with "Cache-Control: no-transform".
func offersGzip(status int, h http.Header) bool {
	switch status {
	case http.StatusNoContent, http.StatusResetContent, http.StatusPartialContent, http.StatusNotModified:
		return false
	}
	if h["Content-Encoding"] != nil || h["Content-Range"] != nil {
		return false
	}
	for _, value := range h["Cache-Control"] {
		if strings.Contains(strings.ToLower(value), "no-transform") {
			return false
		}
	}
	return len(h["Content-Type"]) == 1 && isCompressible(h["Content-Type"][0])
}

// isCompressible reports whether a media type is one of texts, or of another form that gzip
// makes smaller.
//
//	text/html; charset=utf-8, application/problem+json, image/svg+xml    true
//	image/png, application/zip, video/mp4                                false
func isCompressible(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	if strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") {
		return true
	}
	switch media {
	case "application/json", "application/javascript", "application/ecmascript", "application/xml", "application/graphql",
		"application/x-ndjson", "application/jsonl", "application/json-seq", "application/yaml", "application/toml",
		"application/wasm", "application/manifest+json", "application/x-www-form-urlencoded", "application/rtf",
		"application/vnd.ms-fontobject", "font/ttf", "font/otf", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon":
		return true
	}
	return false
}

// markGzip changes the headers of an answer to those of its compressed form. The ETag becomes
// weak, because the bytes are others than those that the function described.
func markGzip(h http.Header) {
	h["Content-Encoding"] = []string{"gzip"}
	delete(h, "Content-Length")
	if etag := h["Etag"]; len(etag) == 1 && strings.HasPrefix(etag[0], `"`) {
		h["Etag"] = []string{"W/" + etag[0]}
	}
}

// compress compresses the body, if the answer allows it and the client accepts it. h holds all
// headers of the answer, and is changed with it.
func (r *response) compress(h http.Header, request *http.Request) {
	if len(r.body) < minGzipBytes || !offersGzip(r.status, h) {
		return
	}
	h.Add("Vary", "Accept-Encoding")
	if request.Method == http.MethodHead || !rest.AcceptsGzip(request.Header) {
		return
	}
	w := gzippers.Get().(*gzip.Writer)
	defer gzippers.Put(w)
	var out bytes.Buffer
	out.Grow(len(r.body) / 4)
	w.Reset(&out)
	if _, err := w.Write(r.body); err != nil {
		return // a Buffer returns none
	}
	if err := w.Close(); err != nil || out.Len() >= len(r.body) {
		return
	}
	markGzip(h)
	r.body = out.Bytes()
}

// streamWriter writes the body of a streamed answer. Without Close it is incomplete.
type streamWriter interface {
	Write(chunk []byte) (int, error)
	Flush() error // what was written reaches the connection's writer
	Close() error
	release() // ends the use of the writer, after Close or a failure
}

// newStreamWriter returns the writer of a streamed answer: a compressing one, where the answer
// allows it, the client accepts it, and not too many are in use. h is changed with it.
func (a *API) newStreamWriter(w http.ResponseWriter, r *http.Request, status int) streamWriter {
	h := w.Header()
	if !offersGzip(status, h) {
		return plainStream{w}
	}
	h.Add("Vary", "Accept-Encoding")
	if !rest.AcceptsGzip(r.Header) {
		return plainStream{w}
	}
	select {
	case a.gzipStreams <- struct{}{}:
	default:
		return plainStream{w}
	}
	markGzip(h)
	z := gzippers.Get().(*gzip.Writer)
	z.Reset(w)
	return &gzipStream{z, a.gzipStreams}
}

// plainStream is a body that is sent as it is.
type plainStream struct{ http.ResponseWriter }

func (plainStream) Flush() error { return nil }
func (plainStream) Close() error { return nil }
func (plainStream) release()     {}

// gzipStream is a body that is compressed.
type gzipStream struct {
	*gzip.Writer

	slots <-chan struct{}
}

func (s *gzipStream) release() {
	s.Reset(nil) // forgets the connection
	gzippers.Put(s.Writer)
	<-s.slots
}
