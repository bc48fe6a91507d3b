package main

import (
	"errors"
	"strconv"
)

// guardFlag is the flag of a version, or revision, that a write demands. Without the
// flag it is 0, which demands none: 0 cannot be given, or it would guard nothing.
type guardFlag struct{ number *int64 }

func (g guardFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return errors.New("want a whole number, at least 1")
	}
	*g.number = n
	return nil
}

func (g guardFlag) String() string {
	if g.number == nil {
		return "0"
	}
	return strconv.FormatInt(*g.number, 10)
}

func (g guardFlag) Type() string { return "int" }
