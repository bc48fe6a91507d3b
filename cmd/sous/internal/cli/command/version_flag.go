package command

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"
)

// VersionFlag returns the value of a flag such as --if-version: the version or revision
// that a write requires, at least 1. It sets number; without the flag number stays 0,
// which requires none.
func VersionFlag(number *int64) pflag.Value { return versionFlag{number} }

type versionFlag struct{ number *int64 }

func (g versionFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return errors.New("want a whole number, at least 1")
	}
	*g.number = n
	return nil
}

func (g versionFlag) String() string {
	if g.number == nil {
		return "0"
	}
	return strconv.FormatInt(*g.number, 10)
}

func (g versionFlag) Type() string { return "int" }
