package bundler

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sourcemap/sourcemap"
)

// plainMap returns a source map of esbuild whose sources have their plain names, without
// the fields that the sandbox does not read.
func plainMap(raw []byte) ([]byte, error) {
	var m struct {
		Version  int      `json:"version"`
		Sources  []string `json:"sources"`
		Names    []string `json:"names"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("source map: %w", err)
	}
	for i, source := range m.Sources {
		// The names are URLs. They stay escaped: so readers of source maps expect them.
		m.Sources[i] = plainSource(source)
	}
	return json.Marshal(m)
}

// plainSource shortens the name of a package's file to begin with node_modules: its folder
// may be above the function's, or a link into the store of a package manager. The module that
// stands for a built-in module gets the name of that.
func plainSource(name string) string {
	for _, namespace := range []string{requiredBuiltin, importedBuiltin} {
		if builtin, ok := strings.CutPrefix(name, namespace+":"); ok {
			return builtin
		}
	}
	const above, store = "../", packagesFolder + "/."
	plain := name
	for strings.HasPrefix(plain, above) {
		plain = strings.TrimPrefix(plain, above)
	}
	at := strings.Index("/"+plain, "/"+packagesFolder+"/")
	if at < 0 {
		return name
	}
	plain = plain[at:]
	if strings.HasPrefix(plain, store) { // such as node_modules/.pnpm/hono@4.0.0/node_modules/hono/
		if last := strings.Index(plain[len(store):], "/"+packagesFolder+"/"); last >= 0 {
			plain = plain[len(store)+last+1:]
		}
	}
	return plain
}

// mapPrefix begins the last line of a module, which holds its source map.
const mapPrefix = "//# sourceMappingURL=data:application/json;base64,"

func withMap(code, mapping []byte) []byte {
	out := slices.Concat(code, []byte(mapPrefix))
	out = base64.StdEncoding.AppendEncode(out, mapping)
	return append(out, '\n')
}

// Original returns the file and the position that a position in the module comes from; lines
// and columns count from 1. It reports whether it found one.
func (b *Bundle) Original(line, column int) (file string, fileLine, fileColumn int, ok bool) {
	m, err := sourcemap.Parse("", b.mapping)
	if err != nil {
		return "", 0, 0, false
	}
	file, _, fileLine, fileColumn, ok = m.Source(line, max(column-1, 0))
	if plain, err := url.PathUnescape(file); err == nil {
		file = plain
	}
	return file, fileLine, fileColumn + 1, ok
}
