package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/jsonfault"
)

// defaultListLimit is the number of items that a list command shows without --limit.
const defaultListLimit = 50

// RegisterLimit adds --limit to a list command and returns its value: the number of items
// to show, 0 for all.
func RegisterLimit(cmd *cobra.Command) *uint {
	return cmd.Flags().Uint("limit", defaultListLimit, "how many to show (0: all)")
}

// NoteMore notes that a list has more items than were printed, if more is set. Under
// --output json there is no note: a program that needs all items sets --limit 0.
func (a *App) NoteMore(more bool) {
	if more {
		a.Note("there are more; see --limit")
	}
}

// ReadJSONArg returns the JSON that the value of a flag stands for: JSON itself, @FILE, or
// - for stdin. It returns nil for "". It fails with CodeValidationJSON for text that is no
// JSON, and with CodeBodyLimit for a file or stdin of more than limit bytes.
//
//	--event '{"name": "Ada"}'   the JSON itself
//	--event @event.json         the content of event.json
//	--event -                   stdin; at most one flag of a command can read it
func ReadJSONArg(flag, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	return readJSONText("--"+flag, value, stdin, limit)
}

// ReadJSONOperand is ReadJSONArg for the argument that errors call name. It must not be
// empty.
func ReadJSONOperand(name, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	if value == "" {
		return nil, api.Errorf(api.CodeValidationJSON, "%s is empty: give JSON, @FILE, or - for stdin", name)
	}
	return readJSONText(name, value, stdin, limit)
}

// DecodeStrict decodes raw, JSON that was given for what errors call name, into a value. Fields
// that raw does not have keep their values. It fails with CodeInvalid for an unknown field or a
// value of another type.
func DecodeStrict(name string, raw json.RawMessage, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return api.Errorf(api.CodeInvalid, "%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// readJSONText is ReadJSONArg for the flag or argument that errors call name.
func readJSONText(name, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	var raw []byte
	switch file, isFile := strings.CutPrefix(value, "@"); {
	case value == "":
		return nil, nil
	case value == "-":
		var err error
		raw, err = ReadBounded(stdin, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: stdin: %w", name, err)
		}
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // only read
		raw, err = ReadBounded(f, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, file, err)
		}
	default:
		raw = []byte(value)
	}
	if why := jsonfault.Of(raw); why != "" {
		return nil, api.Errorf(api.CodeValidationJSON, "%s is not JSON: %s", name, why)
	}
	return raw, nil
}

// ReadBounded reads r to its end. It fails with CodeBodyLimit if r holds more than limit
// bytes, of which it reads limit+1 at most: a wrong file name cannot fill the memory.
func ReadBounded(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = api.Errorf(api.CodeBodyLimit, "more than %s", SizeText(limit))
	}
	return raw, err
}

// ParseRef parses the value of --ref: an alias or a version.
func ParseRef(s string) (api.Ref, error) {
	ref, err := api.ParseRef(s)
	if err != nil {
		return api.Ref{}, fmt.Errorf("--ref: %w", err)
	}
	return ref, nil
}
