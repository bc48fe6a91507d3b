package mirror

import (
	"context"
	"database/sql"
	_ "embed" // the schema
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// schemaVersion is that of the schema. Increase it with every change of schema.sql or feed.sql: a
// file of another version is replaced.
const schemaVersion = 2

// The files in the folder.
const (
	fileName = "mirror.db"
	lockName = "mirror.lock"
)

const (
	// MaxReaders is the number of connections of searches, and feedReaders that of the feed.
	MaxReaders  = 8
	feedReaders = 2
	// cacheKiB is the memory of the writer's page cache, and of each reader's.
	cacheKiB       = 64 << 10
	readerCacheKiB = 8 << 10
	// walBytes is the size to which the write-ahead log is cut after it was written back, which happens
	// when it has three quarters of that, or of half of its share of the largest size: a page that many
	// transactions change is then written to the file once.
	walBytes = 256 << 20
)

var (
	//go:embed schema.sql
	schema string
	//go:embed feed.sql
	feedSchema string
)

// ErrInUse is the error of Open if another process has the folder.
var ErrInUse = errors.New("another process keeps its mirror in this folder; each replica needs a folder of its own")

// errOutdated is the error of a file that has another schema, was not written completely, or is of
// another store.
var errOutdated = errors.New("the file is of another release or of another store")

// file is an open file.
type file struct {
	path    string
	writer  *sql.DB // one connection
	readers *sql.DB // of searches
	feed    *sql.DB // of the feed, which no search holds up
	rows    counts  // guarded by the lock of the mirror
	lock    *os.File
	info    os.FileInfo
	write   *statements
}

// Open opens the file in the folder, and creates it where it is missing. A file that is damaged, or
// has another schema, is replaced by an empty one; fresh reports that the rows are not complete, and
// why says for which reason. Errors: ErrInUse, and those of the file system.
func (m *Mirror) Open(ctx context.Context) (fresh bool, why string, err error) {
	lock, err := lockFolder(m.cfg.Dir)
	if err != nil {
		return false, "", fmt.Errorf("mirror: %w", err)
	}
	path := filepath.Join(m.cfg.Dir, fileName)
	f, err := openFile(ctx, path, &m.cfg)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		fresh, why = true, "there was no file"
	case errors.Is(err, errOutdated):
		fresh, why = true, "the file was of another release or of another store"
	case Damaged(err):
		fresh, why = true, "the file was damaged: "+err.Error()
	default:
		_ = lock.Close()
		return false, "", fmt.Errorf("mirror: %w", err)
	}
	if fresh {
		err = m.Room(ctx)
		if err != nil {
			_ = lock.Close()
			return false, "", err
		}
		f, err = createFile(ctx, path, &m.cfg)
		if err != nil {
			_ = lock.Close()
			return false, "", fmt.Errorf("mirror: %w", err)
		}
	}
	f.lock = lock
	f.info, err = os.Stat(path)
	if err == nil {
		err = f.count(ctx)
	}
	if err != nil {
		return false, "", errors.Join(err, f.close(), lock.Close())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.file, m.damaged = f, nil
	return fresh, why, nil
}

// Close closes the file and releases the folder. The mirror can be opened again.
func (m *Mirror) Close() error { return m.close(false) }

// Discard closes the file and removes it.
func (m *Mirror) Discard() error { return m.close(true) }

func (m *Mirror) close(discard bool) error {
	m.mu.Lock()
	f := m.file
	m.file = nil
	m.mu.Unlock()
	if f == nil {
		return nil
	}
	err := f.close()
	if discard {
		err = removeFile(f.path)
	}
	return errors.Join(err, f.lock.Close())
}

// lockFolder creates the folder and takes its lock, which ends when the returned file is closed or the
// process ends.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	_ = lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	return nil, err
}

// openFile opens an existing file and examines it. Errors: fs.ErrNotExist, errOutdated, and those for
// which Damaged is true.
func openFile(ctx context.Context, path string, cfg *Config) (*file, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	f, err := connect(path, cfg)
	if err != nil {
		return nil, err
	}
	err = f.examine(ctx, cfg.Store)
	if err == nil {
		f.write, err = prepare(ctx, f.writer)
	}
	if err != nil {
		_ = f.close()
		return nil, err
	}
	return f, nil
}

// createFile replaces the file at path by an empty one. The version of its schema is written last: a
// process that is killed before leaves a file that the next one replaces.
func createFile(ctx context.Context, path string, cfg *Config) (*file, error) {
	if err := removeFile(path); err != nil {
		return nil, err
	}
	created, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := created.Close(); err != nil {
		return nil, err
	}
	f, err := connect(path, cfg)
	if err != nil {
		return nil, err
	}
	for _, script := range []string{schema, feedSchema, "INSERT INTO notes VALUES ('" + noteStore + "', " + quote(cfg.Store) + ")", "PRAGMA user_version = " + strconv.Itoa(schemaVersion)} {
		if err == nil {
			_, err = f.writer.ExecContext(ctx, script)
		}
	}
	if err == nil {
		f.write, err = prepare(ctx, f.writer)
	}
	if err != nil {
		_ = f.close()
		return nil, err
	}
	return f, nil
}

// connect opens the pools of a file. It does not read it.
func connect(path string, cfg *Config) (*file, error) {
	writer, err := sql.Open("sqlite", dsn(path, cacheKiB, "page_size("+strconv.Itoa(pageBytes)+")", "journal_mode(WAL)", "synchronous(NORMAL)",
		"wal_autocheckpoint("+strconv.FormatInt(cfg.walPages(), 10)+")", "journal_size_limit("+strconv.Itoa(walBytes)+")", maxPages(cfg.pages())))
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	f := &file{path: path, writer: writer}
	for pool, size := range map[**sql.DB]int{&f.readers: MaxReaders, &f.feed: feedReaders} {
		*pool, err = sql.Open("sqlite", dsn(path, readerCacheKiB, "query_only(1)"))
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		(*pool).SetMaxOpenConns(size)
		(*pool).SetMaxIdleConns(size)
	}
	return f, nil
}

// maxPages returns the pragma that bounds the pages of a file.
func maxPages(pages int64) string {
	if pages <= 0 {
		return ""
	}
	return "max_page_count(" + strconv.FormatInt(pages, 10) + ")"
}

// dsn returns the name of a file with the pragmas of each connection.
func dsn(path string, cache int, pragmas ...string) string {
	query := url.Values{"_txlock": {"immediate"}}
	pragmas = append(pragmas, "busy_timeout(5000)", "cache_size(-"+strconv.Itoa(cache)+")", "temp_store(MEMORY)")
	for _, p := range pragmas {
		if p != "" {
			query.Add("_pragma", p)
		}
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// noteStore is the note with the store of the mirror.
const noteStore = "store"

// quote returns a text as a literal of SQL.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// examine reads the version of the schema and the store of the mirror, and looks for damage.
func (f *file) examine(ctx context.Context, store string) error {
	var version int
	if err := f.writer.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != schemaVersion {
		return errOutdated
	}
	var result string
	if err := f.writer.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result); err != nil {
		return err
	}
	if result != "ok" {
		return &damage{result}
	}
	var of string
	if err := f.writer.QueryRowContext(ctx, "SELECT value FROM notes WHERE name = ?", noteStore).Scan(&of); err != nil {
		return err
	}
	if of != store {
		return errOutdated
	}
	return nil
}

// counts are the numbers of rows. They are read at the open, and then follow the transactions: to
// count the rows of a large file takes seconds.
type counts struct{ jobs, activations int64 }

// count reads the numbers of rows.
func (f *file) count(ctx context.Context) error {
	return f.feed.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM activations)").Scan(&f.rows.jobs, &f.rows.activations)
}

func (f *file) close() error {
	if f.write != nil {
		f.write.close()
	}
	var errs []error
	for _, pool := range []*sql.DB{f.readers, f.feed, f.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// Remove removes the mirror in a folder that no process uses, and the folder unless it holds files of
// others or is the root of a disk. Errors: ErrInUse, fs.ErrNotExist.
func Remove(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written to it
	err = errors.Join(removeFile(filepath.Join(dir, fileName)), os.Remove(filepath.Join(dir, lockName)))
	if rest := os.Remove(dir); !errors.Is(rest, syscall.ENOTEMPTY) && !errors.Is(rest, syscall.EBUSY) {
		err = errors.Join(err, rest)
	}
	return err
}

// removeFile removes a file and what SQLite keeps beside it.
func removeFile(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// damage is the error of a file that the examination found damaged.
type damage struct{ finding string }

func (d *damage) Error() string { return "mirror: " + d.finding }

// Damaged reports whether err means that the file cannot be read any more, or is gone.
func Damaged(err error) bool {
	if found := (*damage)(nil); errors.As(err, &found) || errors.Is(err, ErrMissing) {
		return true
	}
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code() == sqlite3.SQLITE_READONLY_DBMOVED {
		return true
	}
	switch codeOf(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA:
		return true
	case sqlite3.SQLITE_ERROR: // a table is missing
		return strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "malformed")
	}
	return false
}

// Full reports whether err means that the disk is full, or that the file has its largest size.
func Full(err error) bool {
	if short := (*shortage)(nil); errors.As(err, &short) {
		return true
	}
	return codeOf(err) == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// codeOf returns the primary code of SQLite in err, 0 for none.
func codeOf(err error) int {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
