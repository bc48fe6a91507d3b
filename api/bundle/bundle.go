// Package bundle is the one form in which source files are stored and hashed: a
// tar whose bytes follow from the files alone. Equal files have an equal digest
// on every machine, whatever tool, order, owner or clock made the upload.
//
// An upload is unpacked by Unpack, or comes as a map of paths; Pack makes the canonical tar
// of either; Digest names it. The digest identifies a version's source everywhere: in
// drafts, in versions, in the caches of compiled programs. The map's keys are slash-separated
// paths, such as "lib/money.ts".
package bundle

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/codesous/sous/api"
)

// The names with a meaning of their own.
const (
	EntryJS      = "function.js"
	EntryTS      = "function.ts"
	ManifestFile = "manifest.json"
)

// Digest is the hex SHA-256 of a tar's bytes.
func Digest(tar []byte) string {
	sum := sha256.Sum256(tar)
	return hex.EncodeToString(sum[:])
}

// Validate refuses files that cannot be a bundle: none at all, more than
// api.MaxBundleFiles, a path that is not relative, clean, printable UTF-8 of at
// most api.MaxBundlePath bytes, or contents that are not UTF-8
// (CodeValidationBundle, one field a path); and contents that together exceed
// api.MaxBundleBytes (CodeBodyLimit). The size is checked first. A path that lies below
// another file (a.js and a.js/b.js) is refused too.
func Validate(files map[string][]byte) error {
	if len(files) == 0 {
		return api.Errorf(api.CodeValidationBundle, "the bundle holds no file")
	}
	if len(files) > api.MaxBundleFiles {
		return api.Errorf(api.CodeValidationBundle, "the bundle holds %d files, the limit is %d", len(files), api.MaxBundleFiles)
	}
	var fields []api.FieldError
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		total += len(files[name])
		if why := refusal(name, files); why != "" {
			fields = append(fields, api.FieldError{Path: strings.ToValidUTF8(name, "\uFFFD"), Message: why})
		}
	}
	if total > api.MaxBundleBytes {
		return tooLarge()
	}
	if len(fields) > 0 {
		return api.Errorf(api.CodeValidationBundle, "file %q %s", fields[0].Path, fields[0].Message).WithFields(fields...)
	}
	return nil
}

// PathRefusal returns the reason why a file's path is invalid, "" if it is valid.
func PathRefusal(name string) string {
	switch {
	case name == "" || len(name) > api.MaxBundlePath:
		return "needs a path of 1 to 256 bytes"
	case !utf8.ValidString(name):
		return "needs a path in UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return "has a control character or a backslash in its path"
	case path.IsAbs(name) || path.Clean(name) != name || name == "." || name == ".." || strings.HasPrefix(name, "../"):
		return "needs a relative path without empty, . or .. parts"
	}
	return ""
}

// refusal returns the reason why a file is invalid, "" if it is valid.
func refusal(name string, files map[string][]byte) string {
	if why := PathRefusal(name); why != "" {
		return why
	}
	if !utf8.Valid(files[name]) {
		return "must hold UTF-8 text"
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, isFile := files[dir]; isFile {
			return "lies below a path that is a file"
		}
	}
	return ""
}

func tooLarge() error {
	return api.Errorf(api.CodeBodyLimit, "the bundle exceeds %d MiB", api.MaxBundleBytes>>20)
}

// Pack validates files and returns their canonical tar: names sorted, mode 0644,
// no owner, no time; a PAX header only where a name does not fit USTAR. A tar
// over api.MaxBundleBytes is refused (CodeBodyLimit). The format must not change: equal
// files would get another digest, and a repeated publication another version.
func Pack(files map[string][]byte) ([]byte, error) {
	if err := Validate(files); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := tar.Header{
			Typeflag: tar.TypeReg,
			Name:     name,
			Size:     int64(len(files[name])),
			Mode:     0o644,
			ModTime:  time.Unix(0, 0),
		}
		if err := w.WriteHeader(&header); err != nil {
			return nil, api.Wrap(api.CodeValidationBundle, err, "the bundle cannot be packed")
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, api.Wrap(api.CodeInternal, err, "pack the bundle")
		}
	}
	if err := w.Close(); err != nil {
		return nil, api.Wrap(api.CodeInternal, err, "pack the bundle")
	}
	if buf.Len() > api.MaxBundleBytes {
		return nil, tooLarge()
	}
	return buf.Bytes(), nil
}

// Unpack reads a tar that any tool made: regular files, with or without a
// leading "./"; directories are skipped, links, devices and sparse files refused. It reads
// at most api.MaxBundleBytes and validates the files. Errors: CodeValidationBundle,
// CodeBodyLimit, and the coded errors of r.
func Unpack(r io.Reader) (map[string][]byte, error) {
	// One byte more than the limit distinguishes a tar that is too long from one of exactly
	// that size.
	limited := &io.LimitedReader{R: r, N: api.MaxBundleBytes + 1}
	files, err := readFiles(tar.NewReader(limited))
	if limited.N == 0 {
		return nil, tooLarge()
	}
	if err != nil {
		return nil, err
	}
	return files, Validate(files)
}

// readFiles reads the files of a tar, without validating names and contents. A file that
// occurs twice is refused: tools disagree on which one counts.
func readFiles(r *tar.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	total := 0
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, readError(err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			return nil, fileError(name, "is not a regular file")
		}
		if isSparse(header) { // a tar of a few bytes would be a file of many
			return nil, fileError(name, "is sparse: make the tar without --sparse")
		}
		if _, twice := files[name]; twice {
			return nil, fileError(name, "is in the tar twice")
		}
		if len(files) == api.MaxBundleFiles {
			return nil, api.Errorf(api.CodeValidationBundle, "the bundle holds more than %d files", api.MaxBundleFiles)
		}
		content, err := io.ReadAll(io.LimitReader(r, int64(api.MaxBundleBytes-total+1)))
		if err != nil {
			return nil, readError(err)
		}
		total += len(content)
		if total > api.MaxBundleBytes {
			return nil, tooLarge()
		}
		files[name] = content
	}
}

// isSparse reports whether a regular file has holes, whose bytes are not in the tar. Those of the old
// format of GNU tar are no regular files.
func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// fileError returns the CodeValidationBundle of one file of a tar.
func fileError(name, why string) error {
	name = strings.ToValidUTF8(name, "\uFFFD")
	return api.Errorf(api.CodeValidationBundle, "file %q %s", name, why).
		WithFields(api.FieldError{Path: name, Message: why})
}

// readError returns the coded errors of the request's reader (a body over its limit) as they
// are, and CodeValidationBundle for any other error.
func readError(err error) error {
	var coded *api.Error
	if errors.As(err, &coded) {
		return coded
	}
	return api.Wrap(api.CodeValidationBundle, err, "the tar cannot be read")
}
