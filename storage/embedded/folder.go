package embedded

import (
	"errors"
	"os"
	"path/filepath"
)

// filePrefix begins the names of all files of a store.
const filePrefix = "store."

// Holds reports whether dir has files of a store.
func Holds(dir string) bool {
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), filePrefix+"*"))
	return err == nil && len(found) > 0
}

// Remove removes the files of the store in dir, and no others. It fails with api.CodeInvalid
// where a process uses the directory.
func Remove(dir string) error {
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the file is gone
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), filePrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range found {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// escapeGlob returns path as a pattern that matches it alone.
func escapeGlob(path string) string {
	escaped := make([]rune, 0, len(path))
	for _, r := range path {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, r)
	}
	return string(escaped)
}
