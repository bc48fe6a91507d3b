package functions

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// sourcesFile holds the files of the folder in an upload that has one module instead of them:
// a JSON object of texts by path. sous pull and sous diff read it; the function does not.
const sourcesFile = "sources.json"

// maxSources bounds the sources of a bundle, in bytes. Larger ones are left out.
const maxSources = 2 << 20

// packSources returns the content of sourcesFile, nil if the files are too large. Files that
// are not text are left out.
func (s *sourceDir) packSources() ([]byte, error) {
	files, err := s.files()
	if err != nil {
		return nil, nil //nolint:nilerr // a folder may hold what no bundle can: it is bundled all the same
	}
	texts, size := map[string]string{}, 0
	for name, content := range files {
		if utf8.Valid(content) {
			texts[name] = string(content)
			size += len(name) + len(content)
		}
	}
	if size > maxSources {
		return nil, nil
	}
	return json.Marshal(texts)
}

// sourcesOf returns the files that a user wrote, of those that were uploaded. packed is false
// for a bundle without its sources.
func sourcesOf(files map[string][]byte) (sources map[string][]byte, packed bool, err error) {
	raw, ok := files[sourcesFile]
	if !ok {
		return files, false, nil
	}
	var texts map[string]string
	if err := json.Unmarshal(raw, &texts); err != nil {
		return nil, false, fmt.Errorf("%s: %w", sourcesFile, err)
	}
	sources = map[string][]byte{}
	for name, text := range texts {
		sources[name] = []byte(text)
	}
	return sources, true, nil
}
