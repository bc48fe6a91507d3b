package docsite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/rest"
)

const (
	pathSite  = "/docs"
	pathPages = "/docs/*"
)

// policy permits the site's own files only.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Site serves the documentation. It is safe for concurrent use. The pages are rendered on
// the first request and kept.
type Site struct {
	built func() (*builtSite, error)
}

type builtSite struct {
	documents map[string]*document
	missing   []*document // by the number of slashes in the path
}

// New returns the site of the Markdown files of pages.
func New(pages fs.FS) *Site {
	return &Site{built: sync.OnceValues(func() (*builtSite, error) {
		documents, missing, err := build(pages)
		return &builtSite{documents, missing}, err
	})}
}

// Endpoints declares the routes of the site. They need no key.
func (s *Site) Endpoints() []rest.Endpoint {
	return []rest.Endpoint{
		rest.Handle(rest.Route{Method: http.MethodGet, Path: pathSite, Action: access.Public, Extent: rest.NoNamespace}, enter),
		rest.Handle(rest.Route{Method: http.MethodGet, Path: pathPages, Action: access.Public, Extent: rest.NoNamespace}, s.serve),
	}
}

// enter leads to the first page. The address is relative, since a proxy may have removed a
// prefix that this server does not know.
func enter(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "docs/")
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}

// serve answers with a document of the site, or with the page for unknown paths and the
// status 404.
func (s *Site) serve(w http.ResponseWriter, r *http.Request) error {
	site, err := s.built()
	if err != nil {
		return err
	}
	at := strings.TrimPrefix(r.URL.Path, pathSite+"/")
	if d, exists := site.documents[at]; exists {
		d.serve(w, r)
		return nil
	}
	if site.documents[at+"/"] != nil { // a folder
		w.Header().Set("Location", "./"+path.Base(at)+"/")
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	// Readers may type the name of the file or a slash too many.
	if canonical := pathOf(strings.TrimSuffix(at, "/")); canonical != at && site.documents[canonical] != nil {
		w.Header().Set("Location", strings.Repeat("../", strings.Count(at, "/"))+"./"+canonical)
		w.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	depth := strings.Count(at, "/")
	if depth >= len(site.missing) { // a page for it would grow with the path
		return api.Errorf(api.CodeRouteNotFound, "the documentation has no page at this address; it begins at %s/", pathSite)
	}
	d := site.missing[depth]
	d.header(w)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	if _, err := w.Write(d.raw); err != nil {
		return fmt.Errorf("docsite: %w", err)
	}
	return nil
}

// A document is one answer of the site.
type document struct {
	contentType, tag string
	raw              []byte
	zipped           func() ([]byte, error) // compressed once
}

func newDocument(contentType string, raw []byte) *document {
	sum := sha256.Sum256(raw)
	return &document{
		contentType: contentType, tag: hex.EncodeToString(sum[:12]), raw: raw,
		zipped: sync.OnceValues(func() ([]byte, error) {
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			if _, err := w.Write(raw); err != nil {
				return nil, err
			}
			err := w.Close()
			return out.Bytes(), err
		}),
	}
}

// header sets the headers that all answers have.
func (d *document) header(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", d.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// serve answers with the document, or 304 to a client that has it. The client asks each
// time: the addresses stay the same with a new version of the server.
func (d *document) serve(w http.ResponseWriter, r *http.Request) {
	d.header(w)
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	body, tag := d.raw, d.tag
	if rest.AcceptsGzip(r.Header) {
		if zipped, err := d.zipped(); err == nil {
			body, tag = zipped, d.tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", strconv.Quote(tag))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
