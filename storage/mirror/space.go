package mirror

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// pageBytes is the size of a page of the file.
	pageBytes = 4096
	// trimPages is how many pages beyond its bound the file may get while rows are removed: the words
	// of removed rows are noted before their pages are free.
	trimPages = 256
	// roomPages is how many pages must be free after a batch found no room, or a quarter of the file.
	roomPages = 32 << 20 / pageBytes
	// leastRoom is the free space of the disk, in bytes, below which an input or output error counts
	// as one of a full disk.
	leastRoom = 1 << 20
)

// shortage is the error of a mirror that may not grow. Full is true for it.
type shortage struct {
	reason   string
	oversize bool
	cause    error // nil if nothing was tried
}

// Oversize reports whether err means that the file has its largest size.
func Oversize(err error) bool {
	short := (*shortage)(nil)
	return errors.As(err, &short) && short.oversize
}

func (s *shortage) Error() string {
	if s.cause == nil {
		return "mirror: " + s.reason
	}
	return "mirror: " + s.reason + ": " + s.cause.Error()
}

func (s *shortage) Unwrap() error { return s.cause }

// walShare returns the part of MaxBytes that is left for the write-ahead log, in bytes.
func (c *Config) walShare() int64 { return min(c.MaxBytes/4, 2*walBytes) }

// walPages returns the number of pages after which the write-ahead log is written back to the file.
func (c *Config) walPages() int64 {
	size := int64(walBytes)
	if c.MaxBytes > 0 {
		size = min(size, c.walShare()/2)
	}
	return max(1, size*3/4/pageBytes)
}

// pages returns the bound of the pages of the file, 0 for none.
func (c *Config) pages() int64 {
	if c.MaxBytes <= 0 {
		return 0
	}
	return max(1, (c.MaxBytes-c.walShare())/pageBytes)
}

// Room returns an error for which Full is true while the mirror may not grow: the disk has less free
// space than MinFree, or the file and its log have MaxBytes. After a batch that found no room there
// must be some more, so that the mirror does not stop after each batch.
func (m *Mirror) Room(ctx context.Context) error {
	free, err := m.free()
	if err != nil {
		return err
	}
	m.mu.Lock()
	f, full := m.file, m.full
	m.mu.Unlock()
	need := m.cfg.MinFree
	if full {
		need += max(m.cfg.MinFree/8, 4*leastRoom)
	}
	if free < need {
		return m.short(fmt.Sprintf("the disk of %s has %d bytes of free space, and needs %d: free some, or lower mirror-min-free", m.cfg.Dir, free, need), nil)
	}
	if f == nil || m.cfg.MaxBytes <= 0 {
		m.setFull(false)
		return nil
	}
	if full {
		var pages, unused int64
		err := f.feed.QueryRowContext(ctx, "SELECT page_count, freelist_count FROM pragma_page_count, pragma_freelist_count").Scan(&pages, &unused)
		if err != nil {
			return err
		}
		bound := m.cfg.pages()
		if pages-unused > bound-max(bound/16, min(bound/4, roomPages)) {
			return m.oversize(nil)
		}
	}
	if err := m.shrinkLog(ctx, f); err != nil {
		return err
	}
	m.setFull(false)
	return nil
}

// shrinkLog writes the write-ahead log back if it and the file have MaxBytes together.
func (m *Mirror) shrinkLog(ctx context.Context, f *file) error {
	if f.bytes() < m.cfg.MaxBytes {
		return nil
	}
	if _, err := f.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if f.bytes() < m.cfg.MaxBytes {
		return nil
	}
	return m.oversize(nil)
}

// oversize is short for a file that has its largest size.
func (m *Mirror) oversize(cause error) error {
	m.setFull(true)
	return &shortage{oversize: true, cause: cause, reason: fmt.Sprintf(
		"the file is full, it may have %d bytes: raise mirror-max-bytes, or wait until jobs and activations are deleted", m.cfg.MaxBytes)}
}

// free returns the free bytes of the disk. The folder may not exist yet.
func (m *Mirror) free() (int64, error) {
	var space syscall.Statfs_t
	for dir := m.cfg.Dir; ; dir = filepath.Dir(dir) {
		err := syscall.Statfs(dir, &space)
		if errors.Is(err, syscall.ENOENT) && dir != filepath.Dir(dir) {
			continue
		}
		return int64(space.Bavail) * space.Bsize, err
	}
}

// short notes that there is no room, and returns the error of that.
func (m *Mirror) short(reason string, cause error) error {
	m.setFull(true)
	return &shortage{reason: reason, cause: cause}
}

func (m *Mirror) setFull(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = full
}

// failed returns the error of a write. Not every call with which a full disk is met tells so: the index
// of the write-ahead log, for one, gets an error of input and output.
func (m *Mirror) failed(err error) error {
	switch code := codeOf(err); {
	case Full(err):
		if free, other := m.free(); other == nil && m.cfg.MaxBytes > 0 && free >= m.cfg.MinFree+4*leastRoom {
			return m.oversize(err)
		}
		return m.short("the disk is full, or the size of files is limited", err)
	case code == sqlite3.SQLITE_IOERR || code == sqlite3.SQLITE_CANTOPEN:
		if free, other := m.free(); other == nil && free < leastRoom {
			return m.short("the disk is full", err)
		}
	}
	return err
}

// bytes returns the size of the file and of its write-ahead log.
func (f *file) bytes() (sum int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(f.path + suffix); err == nil { // there may be no log
			sum += info.Size()
		}
	}
	return sum
}

// Broken reports whether err is one of the file or of its folder that a new open may mend.
func Broken(err error) bool {
	switch codeOf(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return true
	}
	path := (*os.PathError)(nil)
	return errors.As(err, &path) || errors.Is(err, ErrInUse)
}
