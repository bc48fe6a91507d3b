package functions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/bundle"
	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/bundler"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// upload returns the files to upload: those of the folder, or if bundling is allowed and
// the function needs it, one module with all that it imports, and the manifest. The Bundle
// is nil in the first case. entry is that of sous.json, "" for none.
func (s *sourceDir) upload(mayBundle bool, entry string) (map[string][]byte, *bundler.Bundle, error) {
	if mayBundle {
		files, b, err := s.bundled(entry)
		if err != nil || b != nil {
			return files, b, err
		}
	}
	files, err := s.files()
	if err == nil && entry != "" {
		files, err = withEntry(files, entry)
	}
	return files, nil, err
}

// bundled returns the files to upload if the function needs bundling, else nil.
func (s *sourceDir) bundled(entry string) (map[string][]byte, *bundler.Bundle, error) {
	fields, err := s.manifest()
	if err != nil || fields == nil {
		return nil, nil, err
	}
	folder := bundler.Folder{Root: s.root, Ignored: func(path string) bool { return s.skips(path, false) }}
	folder.AllowOutside = s.outside
	if profiles, err := command.ProfilesPath(); err == nil {
		folder.Private = filepath.Dir(profiles) // keys of the user
	}
	folder.Entry = s.entry(cmp.Or(entry, text(fields["entry"])))
	folder.Handler = text(fields["handler"])
	if folder.Entry == "" || !validHandler(folder.Handler) {
		return nil, nil, nil // the server refuses it
	}
	b, err := bundler.Make(folder)
	if err != nil || b == nil {
		return nil, nil, err
	}
	fields["entry"], err = json.Marshal(bundler.Output)
	if err != nil {
		return nil, nil, err
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, nil, err
	}
	files := map[string][]byte{bundler.Output: b.Code, bundle.ManifestFile: raw}
	sources, err := s.packSources()
	if err != nil {
		return nil, nil, err
	}
	if sources != nil {
		files[sourcesFile] = sources
	}
	return files, b, nil
}

// manifest returns the fields of the folder's manifest, or those that a manifest must have
// if there is none. It returns nil if the manifest is no JSON object, or a symbolic link.
func (s *sourceDir) manifest() (map[string]json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	path := filepath.Join(s.root, bundle.ManifestFile)
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil // an upload of the files refuses it: it may lead out of the folder
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || s.skips(bundle.ManifestFile, false) {
		fields["schema"], err = json.Marshal(manifest.SchemaV1)
		return fields, err
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(raw, &fields) != nil {
		fields = nil // the server explains what a manifest must be
	}
	return fields, nil
}

// text returns the string that raw holds, "" if it holds none.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// entry returns the module to start from: the one that the manifest names, else the first
// that exists. It returns "" if there is none, or if it is not part of the function.
func (s *sourceDir) entry(named string) string {
	names := []string{bundle.EntryJS, bundle.EntryTS, "function.jsx", "function.tsx"}
	if named != "" {
		names = []string{path.Clean(named)}
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(name)))
		if err == nil && info.Mode().IsRegular() && filepath.IsLocal(name) && !s.skips(name, false) {
			return name
		}
	}
	return ""
}

// validHandler reports whether name can be that of an export; "" means the default.
func validHandler(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// maxShownPackages is the number of packages that the text of a bundle lists.
const maxShownPackages = 20

// bundleText lists the contents of a bundle, the largest package first.
func bundleText(name string, b *bundler.Bundle) string {
	rows := make([][2]string, 0, len(b.Packages)+1)
	rest := int64(0)
	for i, p := range b.Packages {
		if i < maxShownPackages {
			rows = append(rows, [2]string{command.Printable(strings.TrimSpace(p.Name + " " + p.Version)), command.SizeText(p.Bytes)})
		} else {
			rest += p.Bytes
		}
	}
	if more := len(b.Packages) - maxShownPackages; more > 0 {
		rows = append(rows, [2]string{fmt.Sprintf("%d more packages", more), command.SizeText(rest)})
	}
	rows = append(rows, [2]string{"own files", command.SizeText(b.OwnBytes)})
	first, second := 0, 0
	for _, row := range rows {
		first, second = max(first, len(row[0])), max(second, len(row[1]))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "bundled %s: %s, and a source map of %s", name, command.SizeText(b.Bytes), command.SizeText(int64(len(b.Code))-b.Bytes))
	for _, row := range rows {
		fmt.Fprintf(&out, "\n  %-*s  %*s", first, row[0], second, row[1])
	}
	return out.String()
}

// bundleJSON is the JSON form of a bundle.
type bundleJSON struct {
	Bytes          int64             `json:"bytes"`
	SourceMapBytes int64             `json:"source_map_bytes"`
	OwnBytes       int64             `json:"own_bytes"`
	Packages       []bundler.Package `json:"packages"`
}

func newBundleJSON(b *bundler.Bundle) *bundleJSON {
	if b == nil {
		return nil
	}
	packages := b.Packages
	if packages == nil {
		packages = []bundler.Package{} // [] in JSON, not null
	}
	return &bundleJSON{Bytes: b.Bytes, SourceMapBytes: int64(len(b.Code)) - b.Bytes, OwnBytes: b.OwnBytes, Packages: packages}
}

// tooLarge returns err, and if it is the limit of an upload, with the largest packages of
// the bundle. b may be nil.
func tooLarge(b *bundler.Bundle, err error) error {
	if b == nil || api.ErrorCode(err) != api.CodeBodyLimit {
		return err
	}
	const shown = 3
	var largest []string
	for _, p := range b.Packages[:min(shown, len(b.Packages))] {
		largest = append(largest, fmt.Sprintf("%s (%s)", p.Name, command.SizeText(p.Bytes)))
	}
	return api.Errorf(api.CodeBodyLimit, "the bundle has %s with its source map, the limit is %s; its largest packages are %s",
		command.SizeText(int64(len(b.Code))), command.SizeText(api.MaxBundleBytes), cmp.Or(strings.Join(largest, ", "), "none"))
}

// original replaces the positions in the bundled module that err names by those in the
// files that they come from, with the lines of source from the folder root. b may be nil.
func original(b *bundler.Bundle, root string, err error) error {
	var coded *api.Error
	if b == nil || !errors.As(err, &coded) {
		return err
	}
	for i := range coded.Fields {
		f := &coded.Fields[i]
		if f.Path != bundler.Output {
			continue
		}
		f.Excerpt = "" // the text of bundled.js, if the server sent any
		file, line, column, ok := b.Original(f.Line, f.Column)
		if !ok {
			continue
		}
		at := fmt.Sprintf("%s:%d:%d:", f.Path, f.Line, f.Column)
		f.Path, f.Line, f.Column = file, line, column
		coded.Message = strings.Replace(coded.Message, at, fmt.Sprintf("%s:%d:%d:", file, line, column), 1)
	}
	bundle.AddExcerpts(err, func(path string) []byte { return sourceOf(root, path) })
	return err
}

// sourceOf returns the contents of a file of the folder root, nil if it cannot be read there:
// packages may be in a folder above.
func sourceOf(root, path string) []byte {
	if !filepath.IsLocal(path) {
		return nil
	}
	contents, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		return nil // an excerpt is an extra
	}
	return contents
}
