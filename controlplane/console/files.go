package console

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane/rest"
)

// An asset is one script or style, whose name has the hash of its content.
type asset struct{ gzip, zstd []byte }

// files are the contents of the embedded archive.
type files struct {
	Script string            `json:"script"`
	Style  string            `json:"style"`
	assets map[string]*asset // by name below the console, as in assets/main-5A0F.js
}

// open reads the archive of tools/console. It returns nil for an empty one.
func open(archive []byte) (*files, error) {
	if len(archive) == 0 {
		return nil, nil //nolint:nilnil // documented: no console
	}
	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	all := &files{assets: map[string]*asset{}}
	for _, entry := range reader.File {
		content, err := readEntry(entry)
		if err != nil {
			return nil, fmt.Errorf("console: %s: %w", entry.Name, err)
		}
		if entry.Name == "index.json" {
			if err := json.Unmarshal(content, all); err != nil {
				return nil, fmt.Errorf("console: %s: %w", entry.Name, err)
			}
			continue
		}
		encoding := path.Ext(entry.Name)
		name := strings.TrimSuffix(entry.Name, encoding)
		a := all.assets[name]
		if a == nil {
			a = &asset{}
			all.assets[name] = a
		}
		if encoding == ".zst" {
			a.zstd = content
		} else {
			a.gzip = content
		}
	}
	if all.assets[all.Script] == nil || all.assets[all.Style] == nil {
		return nil, fmt.Errorf("console: the archive has no script %q or no style %q", all.Script, all.Style)
	}
	return all, nil
}

func readEntry(entry *zip.File) ([]byte, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	if closing := r.Close(); err == nil {
		err = closing
	}
	return content, err
}

var contentTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
}

// serve answers with an asset. Its name changes with its content, so clients keep it for a year.
func (f *files) serve(w http.ResponseWriter, r *http.Request, name string) error {
	a := f.assets[name]
	if a == nil {
		return api.Errorf(api.CodeRouteNotFound, "the console has no file %q", path.Base(name))
	}
	h := w.Header()
	h.Set("Content-Type", contentTypes[path.Ext(name)])
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := a.gzip
	switch {
	case a.zstd != nil && acceptsZstd(r.Header):
		body = a.zstd
		h.Set("Content-Encoding", "zstd")
	case rest.AcceptsGzip(r.Header):
		h.Set("Content-Encoding", "gzip")
	default:
		plain, err := gzip.NewReader(bytes.NewReader(a.gzip))
		if err != nil {
			return err
		}
		body, err = io.ReadAll(plain)
		if err != nil {
			return err
		}
	}
	h.Set("ETag", strconv.Quote(path.Base(name)+h.Get("Content-Encoding")))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// acceptsZstd reports whether a client names zstd among its encodings and does not refuse it.
func acceptsZstd(h http.Header) bool {
	for _, value := range h["Accept-Encoding"] {
		for item := range strings.SplitSeq(value, ",") {
			coding, parameters, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(coding), "zstd") && !strings.HasPrefix(strings.TrimSpace(parameters), "q=0") {
				return true
			}
		}
	}
	return false
}
