package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codesous/sous/storage/embedded"
)

// oldDataDir was the default folder of the embedded store. A store that is there is still
// used.
const oldDataDir = ".sous"

// findDataDir returns the folder of the embedded store where no setting names one: the one in
// the current folder if it has a store, else that of the user, which every terminal finds
// again ($XDG_STATE_HOME/sous, https://specifications.freedesktop.org/basedir-spec).
func findDataDir() (string, error) {
	if embedded.Holds(oldDataDir) {
		return filepath.Abs(oldDataDir)
	}
	state, err := userState()
	if err != nil {
		return "", fmt.Errorf("data-dir: name a folder: %w", err)
	}
	return state, nil
}

// userState returns the folder for the state of this program in that of the user.
func userState() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // such a value is to be ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "sous"), nil
}

// reset removes the embedded store and its mirror.
func (s *settings) reset() error {
	mirrorDir, err := s.mirrorDir()
	if err != nil {
		return err
	}
	return resetDataDir(s.DataDir, mirrorDir)
}

// resetDataDir removes the embedded store in dir, its mirror in mirrorDir, and the key of its secrets.
// It removes nothing else, and fails if dir has files but no store: a mistyped folder is not emptied.
func resetDataDir(dir, mirrorDir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if !embedded.Holds(dir) {
		return fmt.Errorf("reset: %s holds no store", dir)
	}
	if err := embedded.Remove(dir); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if err := resetMirror(mirrorDir); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	err = os.Remove(filepath.Join(dir, devSecretsKey))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
