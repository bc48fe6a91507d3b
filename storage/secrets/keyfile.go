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

// lookInterval is how often a key file is looked at, at most.
const lookInterval = time.Second

// KeyFile is the server's file of identities, read again when it changes, so that a
// rotation needs no restart.
type KeyFile struct {
	path   string
	logger *zap.Logger
	clock  func() time.Time

	mu      sync.Mutex
	current *ring
	state   fileState
	looked  time.Time
	refused string // why a newer file was, as the log has it
}

// fileState tells whether a file is another than before; one that was renamed to its
// place tells by its inode.
type fileState struct {
	inode    uint64
	modified time.Time
	size     int64
}

// OpenKeyFile reads the file, and refuses one that is not to be used: with no
// identity in it, or one that everybody may read.
func OpenKeyFile(path string, logger *zap.Logger) (*KeyFile, error) {
	f := &KeyFile{path: path, logger: logger, clock: time.Now}
	var err error
	if f.current, f.state, err = readKeyFile(path, nil); err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	f.looked = f.clock()
	return f, nil
}

// ring gives the identities of now; a file that cannot be used leaves those that
// were. At once where the caller cannot do with a second's delay.
func (f *KeyFile) ring(atOnce bool) *ring {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock()
	if !atOnce && now.Sub(f.looked) < lookInterval {
		return f.current
	}
	f.looked = now
	newer, state, err := readKeyFile(f.path, &f.state)
	switch {
	case err != nil:
		if err.Error() != f.refused { // told once, not once a second
			f.refused = err.Error()
			f.logger.Error("the new key file cannot be used; the keys that were stay", zap.String("file", f.path), zap.Error(err))
		}
	case newer != nil:
		f.current, f.state, f.refused = newer, state, ""
		f.logger.Info("read the key file again", zap.Int("identities", len(newer.all)), zap.String("seals_with", newer.fingerprint))
	}
	return f.current
}

// readKeyFile reads a file, unless it is as known says: then it gives nothing.
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

// checkMode refuses files that others than the owner and the group may read, or than
// the owner may write. A group may read it: that is how containers are given files.
func checkMode(info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errors.New("it is a folder")
	case mode.Perm()&0o027 != 0:
		return fmt.Errorf("its mode is %#o, so that others may read or change it; make it 0600 (chmod 600)", mode.Perm())
	}
	return nil
}
