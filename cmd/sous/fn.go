package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
)

// defaultAlias is what deploy sets and what invoke, rollback and the printed
// URL mean unless told otherwise.
const defaultAlias = api.DefaultAlias

// defaultListLimit is how many items a list command shows unless told otherwise.
const defaultListLimit = 50

func (a *app) fnCommand() *cobra.Command {
	return a.remoteCommand("fn", "Write, publish, invoke and look after functions",
		a.fnInitCommand(), a.fnTestCommand(), a.fnDeployCommand(), a.fnInvokeCommand(),
		a.fnListCommand(), a.fnGetCommand(), a.fnVersionsCommand(), a.fnAliasCommand(),
		a.fnRollbackCommand(), a.fnDeleteCommand(), a.fnLogsCommand())
}

// registerLimit adds --limit to a list command.
func registerLimit(cmd *cobra.Command) *uint {
	return cmd.Flags().Uint("limit", defaultListLimit, "how many to show (0: all)")
}

// noteMore tells people that a list was cut.
func (a *app) noteMore(more bool) {
	if more {
		a.note("there are more; see --limit")
	}
}

// readJSONArg reads the value of a flag that takes JSON, @FILE, or - for stdin;
// at most limit bytes. "" is nil.
func readJSONArg(flag, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
	return readJSONText("--"+flag, value, stdin, limit)
}

// readJSONOperand is readJSONText for an argument that must be there: "" is no JSON.
func readJSONOperand(name, value string, stdin io.Reader, limit int64) (json.RawMessage, error) {
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
		if raw, err = readBounded(stdin, limit); err != nil {
			return nil, fmt.Errorf("%s: stdin: %w", name, err)
		}
	case isFile:
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer func() { _ = f.Close() }() // only read
		if raw, err = readBounded(f, limit); err != nil {
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

func readBounded(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = api.Errorf(api.CodeBodyLimit, "more than %s", sizeText(limit))
	}
	return raw, err
}
