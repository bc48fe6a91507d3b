package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
)

// Keygen creates a key file with one new identity, readable by its owner only. It returns
// the fingerprint that records name the key by. It fails where the file exists: a key that is
// overwritten makes its secrets unreadable. The file is synced, and has this form:
//
//	# 6f1d2c3b4a596877, made 2026-01-01T00:00:00Z
//	AGE-SECRET-KEY-1…
func Keygen(path string, now time.Time) (string, error) {
	line, mark, err := newIdentity(now)
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s exists: --rotate adds a key in front of those that it holds", path)
	}
	if err != nil {
		return "", err
	}
	_, err = file.Write(line)
	return mark, errors.Join(err, file.Sync(), file.Close())
}

// Rotate puts a new identity before those of a key file, which continue to open the
// secrets that they sealed. It replaces the file as a whole and keeps its mode: no server
// reads a part of it. It returns the fingerprint of the new identity.
func Rotate(path string, now time.Time) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if err := checkMode(info); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if _, err := parseRing(bytes.NewReader(old)); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	line, mark, err := newIdentity(now)
	if err != nil {
		return "", err
	}
	return mark, replace(path, info, append(line, old...))
}

// replace writes text to a new file beside path and renames it to path. info has the mode and
// the owner of the file that it replaces. A crash leaves the old file, and perhaps a temporary
// one beside it that holds keys.
func replace(path string, info fs.FileInfo, text []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	err = errors.Join(err, next.Chmod(info.Mode().Perm()), keepOwner(next, info), next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(next.Name()))
	}
	return err
}

// newIdentity returns a new identity as two lines of a key file, and its fingerprint.
func newIdentity(now time.Time) (line []byte, mark string, err error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	mark = fingerprint(identity.Recipient())
	return fmt.Appendf(nil, "# %s, made %s\n%s\n", mark, now.UTC().Format(time.RFC3339), identity), mark, nil
}
