package functions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/joho/godotenv"
)

// localFiles hold values for this machine, one NAME=value on each line. They are no part of a
// bundle. A name of the second replaces one of the first.
var localFiles = []string{".env", ".dev.vars"}

// localEnv returns the values of the folder's localFiles.
func (s *sourceDir) localEnv() (map[string]string, error) {
	out := map[string]string{}
	for _, name := range localFiles {
		values, err := readValues(filepath.Join(s.root, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		maps.Copy(out, values)
	}
	return out, nil
}

// readValues reads a file of NAME=value lines, in the syntax of dotenv.
func readValues(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values, err := godotenv.Parse(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%s: want lines of the form NAME=value", path) // its error shows the value
	}
	return values, nil
}

// withLocalEnv returns a config whose env has the values of localFiles over those of sous.json
// and of the config itself, and no others: a value that is deleted from a file is not kept.
func (s *sourceDir) withLocalEnv(config json.RawMessage, settings map[string]json.RawMessage) (json.RawMessage, error) {
	local, err := s.localEnv()
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if len(config) > 0 && json.Unmarshal(config, &fields) != nil {
		return config, nil //nolint:nilerr // the server explains what a config must be
	}
	var env map[string]string
	for _, from := range []json.RawMessage{settings["env"], fields["env"]} {
		if len(from) > 0 && json.Unmarshal(from, &env) != nil {
			return config, nil //nolint:nilerr // as above
		}
	}
	if env == nil { // none, or null
		env = map[string]string{}
	}
	maps.Copy(env, local)
	if len(env) == 0 {
		fields["env"] = json.RawMessage("null")
		return json.Marshal(fields)
	}
	raw, err := json.Marshal(env)
	if err != nil {
		return nil, err
	}
	fields["env"] = raw
	return json.Marshal(fields)
}
