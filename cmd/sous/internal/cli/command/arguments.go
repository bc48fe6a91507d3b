package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
)

// defaultListLimit is how many items a list command shows unless told otherwise.
const defaultListLimit = 50

// RegisterLimit adds --limit to a list command.
func RegisterLimit(cmd *cobra.Command) *uint {
	return cmd.Flags().Uint("limit", defaultListLimit, "how many to show (0: all)")
}

// NoteMore tells people that a list was cut.
func (a *App) NoteMore(more bool) {
	if more {
		a.Note("there are more; see --limit")
	}
}

// ReadJSONArg reads the value of a flag that takes JSON, @FILE, or - for stdin;
// at most limit bytes. "" is nil.
func ReadJSONArg(flag, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	return readJSONText("--"+flag, value, stdin, limit)
}

// ReadJSONOperand is readJSONText for an argument that must be there: "" is no JSON.
func ReadJSONOperand(name, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	if value == "" {
		return nil, api.Errorf(api.CodeValidationJSON, "%s is empty: give JSON, @FILE, or - for stdin", name)
	}
	return readJSONText(name, value, stdin, limit)
}

// readJSONText is readJSONArg for what errors call name.
func readJSONText(name, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	var raw []byte
	switch file, isFile := strings.CutPrefix(value, "@"); {
	case value == "":
		return nil, nil
	case value == "-":
		var err error
		if raw, err = ReadBounded(stdin, limit); err != nil {
			return nil, fmt.Errorf("%s: stdin: %w", name, err)
		}
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // only read
		if raw, err = ReadBounded(f, limit); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, file, err)
		}
	default:
		raw = []byte(value)
	}
	if !json.Valid(raw) {
		return nil, api.Errorf(api.CodeValidationJSON, "%s is not JSON", name)
	}
	return raw, nil
}

func ReadBounded(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = api.Errorf(api.CodeBodyLimit, "more than %s", SizeText(limit))
	}
	return raw, err
}

// ParseRef reads --ref.
func ParseRef(s string) (api.Ref, error) {
	ref, err := api.ParseRef(s)
	if err != nil {
		return api.Ref{}, fmt.Errorf("--ref: %w", err)
	}
	return ref, nil
}
