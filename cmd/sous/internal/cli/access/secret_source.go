package access

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// valueSource is the source of a secret's value: a file, stdin or the terminal. A value is
// never an argument, which other users of the machine could read.
type valueSource struct {
	file    string // "-" is stdin
	newline bool   // keep the line break at the end
}

func (s *valueSource) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.file, "value-file", "", "file that holds the value; - for stdin")
	flags.BoolVar(&s.newline, "keep-newline", false, "keep the line break at the end of the value")
}

// read returns the value. Without a file it asks for it on the terminal.
func (s *valueSource) read(a commands, name string) (string, error) {
	switch s.file {
	case "":
		return s.ask(a, name)
	case "-":
		return s.trimmed(a.Stdin, "stdin")
	}
	f, err := os.Open(s.file)
	if err != nil {
		return "", fmt.Errorf("--value-file: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	return s.trimmed(f, s.file)
}

// trimmed returns the content of from without the line break at its end: one "\n" or "\r\n".
// It refuses a value that the server would refuse. It reads no more than the largest value
// and a line break.
func (s *valueSource) trimmed(from io.Reader, where string) (string, error) {
	raw, err := command.ReadBounded(from, api.MaxSecretBytes+int64(len("\r\n")))
	if err != nil {
		return "", fmt.Errorf("%s: %w", where, err)
	}
	value := string(raw)
	if !s.newline {
		value = strings.TrimSuffix(strings.TrimSuffix(value, "\n"), "\r")
	}
	return value, api.ValidateSecretValue(value)
}

// ask reads the value from the terminal without echo.
func (s *valueSource) ask(a commands, name string) (string, error) {
	in, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return "", errors.New("not a terminal: give the value with --value-file FILE, or - for stdin")
	}
	if _, err := fmt.Fprintf(a.Stderr, "Value of %s (not shown): ", name); err != nil {
		return "", err
	}
	raw, err := term.ReadPassword(int(in.Fd()))
	if _, printErr := fmt.Fprintln(a.Stderr); err == nil {
		err = printErr
	}
	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}
	return string(raw), api.ValidateSecretValue(string(raw))
}
