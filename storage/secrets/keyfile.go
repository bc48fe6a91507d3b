package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// lookInterval is the shortest time between two checks of a key file, except for uses that
// failed with the known identities.
const lookInterval = time.Second

// KeyFile is the server's file of identities. It is read again when it changes, so that a
// rotation needs no restart: a use of it checks the file's state if the last check is a second
// old. A file that cannot be used later on is logged, and the identities that were read before
// stay. It is safe for concurrent use.
type KeyFile struct {
	path   string
	logger *zap.Logger
	clock  func() time.Time

	mu      sync.Mutex
	current *ring
	state   fileState
	looked  time.Time
	refused string // the error of a newer file, as it was logged
}

// fileState identifies a version of a file. A file that was replaced by a rename has
// another inode.
type fileState struct {
	inode    uint64
	modified time.Time
	size     int64
}

// OpenKeyFile reads the file. It fails for a file without an identity, for a directory, and for
// a file that users other than the owner and the group may read, or that the group may write.
func OpenKeyFile(path string, logger *zap.Logger) (*KeyFile, error) {
	f := &KeyFile{path: path, logger: logger, clock: time.Now}
	var err error
	f.current, f.state, err = readKeyFile(path, nil)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	f.looked = f.clock()
	return f, nil
}

// ring returns the current identities. A changed file that cannot be used leaves the
// previous ones in place. With fresh it checks the file, even within lookInterval of the
// last check.
func (f *KeyFile) ring(fresh bool) *ring {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	if !fresh && now.Sub(f.looked) < lookInterval {
		return f.current
	}
	f.looked = now
	newer, state, err := readKeyFile(f.path, &f.state)
	switch {
	case err != nil:
		if err.Error() != f.refused { // logged once, not once a second
			f.refused = err.Error()
			f.logger.Error("the changed key file cannot be used; the previous keys stay in use", zap.String("file", f.path), zap.Error(err))
		}
	case newer != nil:
		f.current, f.state, f.refused = newer, state, ""
		f.logger.Info("read the key file again", zap.Int("identities", len(newer.all)), zap.String("seals_with", newer.fingerprint))
	}
	return f.current
}

// readKeyFile reads a file. It returns a nil ring where the file is in the state known.
func readKeyFile(path string, known *fileState) (*ring, fileState, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fileState{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, fileState{}, err
	}
	state := stateOf(info)
	if known != nil && *known == state {
		return nil, state, nil
	}
	if err := checkMode(info); err != nil {
		return nil, state, err
	}
	read, err := parseRing(file)
	return read, state, err
}

func stateOf(info fs.FileInfo) fileState {
	state := fileState{modified: info.ModTime(), size: info.Size()}
	if raw, ok := info.Sys().(*syscall.Stat_t); ok {
		state.inode = raw.Ino
	}
	return state
}

// checkMode refuses a directory, a file that users other than the owner and the group may
// read, write or execute, and a file that the group may write. The group may read it, since
// containers receive files that way. 0600, 0640 and 0400 pass; 0660 and 0644 do not.
func checkMode(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errors.New("it is a directory")
	case mode.Perm()&0o027 != 0:
		return fmt.Errorf("its mode is %#o, so that others may read or change it; make it 0600 (chmod 600)", mode.Perm())
	}
	return nil
}
