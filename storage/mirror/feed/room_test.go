package feed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
)

// large makes a job of about 3 KiB.
func large(i int, j *api.NewJob) {
	j.Payload = json.RawMessage(fmt.Sprintf(`{"n":%d,"text":"%s"}`, i, strings.Repeat(fmt.Sprint("word", i, " "), 300)))
}

// stopped waits until a mirror is stopped for a reason, and serves its rows.
func stopped(t *testing.T, m *mirrored, reason string) {
	t.Helper()
	eventually(t, "a stopped mirror", func() string {
		s := m.Status()
		if s.State != mirror.StateStopped || !s.Serves || !strings.Contains(s.Reason, reason) {
			return fmt.Sprintf("got %+v", s)
		}
		return ""
	})
}

// limited runs a mirror with bounds on the folder of f. It returns the warnings that it logs.
func (f *fixture) limited(t *testing.T, cfg mirror.Config) (*mirrored, *observer.ObservedLogs) {
	t.Helper()
	cfg.Dir = f.dir
	m, err := mirror.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	core, logs := observer.New(zapcore.WarnLevel)
	return f.start(t, m, feed.Config{Retry: 10 * time.Millisecond, Logger: zap.New(core)}), logs
}

// TestFullFileContinuesWhenRecordsAreDeleted: a file of the largest size stops the mirror only. It
// continues by itself when jobs are deleted, whose rows are removed although nothing can be added.
func TestFullFileContinuesWhenRecordsAreDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := f.enqueue(t, "mail", 300, nil)
	const most = 8 << 20
	m, logs := f.limited(t, mirror.Config{MaxBytes: most})
	f.equal(t, m, 300)
	f.events(t, "more", "all")
	for m.Status().State != mirror.StateStopped {
		ids = append(ids, f.enqueue(t, "more", 200, large)...)
		eventually(t, "rows", func() string {
			var n int
			err := m.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM jobs").Scan(&n)
			if err != nil || n < len(ids) && m.Status().State != mirror.StateStopped {
				return fmt.Sprintf("%d rows, error %v", n, err)
			}
			return ""
		})
	}
	stopped(t, m, "mirror-max-bytes")
	var bytes int64
	for _, name := range []string{"mirror.db", "mirror.db-wal"} {
		info, err := os.Stat(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatalf("Stat: %v", err)
		}
		bytes += info.Size()
	}
	if bytes > most+most/8 { // a transaction may end beyond the bound
		t.Errorf("got files of %d bytes, want about %d at most", bytes, most)
	}
	f.work(t, "mail", 100, succeed) // the queue does not notice
	for _, id := range ids[100:] {
		if err := f.broker.Delete(t.Context(), f.tenant, id); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	eventually(t, "a mirror that continues", func() string {
		if s := m.Status(); s.State == mirror.StateStopped {
			return fmt.Sprintf("got %+v", s)
		}
		return ""
	})
	m.Rebuild() // for rows whose jobs were deleted after the first pass had read them
	f.equal(t, m, 100)
	if n := logs.FilterMessageSnippet("is stopped").Len(); n != 1 {
		t.Errorf("got %d warnings of a stopped mirror, want 1: %v", n, logs.All())
	}
}

// TestReservedDiskStopsTheMirror: it leaves the free space that it is configured to.
func TestReservedDiskStopsTheMirror(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m, logs := f.limited(t, mirror.Config{MinFree: 1 << 60})
	eventually(t, "a stopped mirror", func() string {
		if s := m.Status(); s.State != mirror.StateStopped || s.Serves || !strings.Contains(s.Reason, "mirror-min-free") {
			return fmt.Sprintf("got %+v", s)
		}
		if logs.Len() != 1 {
			return fmt.Sprintf("%d warnings", logs.Len())
		}
		return ""
	})
	if _, err := os.Stat(filepath.Join(f.dir, "mirror.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v of the file, want none to be created", err)
	}
}

// TestFullDiskStopsTheMirrorOnly: on a disk that is really full, jobs are enqueued and end while the
// mirror is stopped, and it equals the store after space was freed.
func TestFullDiskStopsTheMirrorOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	err := unix.Mount("tmpfs", f.dir, "tmpfs", 0, "size=64m")
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root can mount a small disk")
	}
	if err != nil {
		t.Fatalf("Mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(f.dir, unix.MNT_DETACH); err != nil {
			t.Errorf("Unmount: %v", err)
		}
	})
	ballast := filepath.Join(f.dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 58<<20), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	m, logs := f.limited(t, mirror.Config{})
	f.enqueue(t, "mail", 200, nil)
	f.equal(t, m, 200)
	f.enqueue(t, "mail", 4000, large)
	stopped(t, m, "free space")
	if n := f.work(t, "mail", 100, succeed); n != 100 {
		t.Errorf("got %d jobs of a queue without a mirror, want 100", n)
	}
	f.enqueue(t, "mail", 100, nil)
	if err := os.Remove(ballast); err != nil {
		t.Fatalf("Remove: %v", err)
	}
	f.equal(t, m, 4300)
	eventually(t, "a serving mirror", func() string {
		if s := m.Status(); s.State != mirror.StateServing {
			return fmt.Sprintf("got %+v", s)
		}
		return ""
	})
	if n := logs.FilterMessageSnippet("is stopped").Len(); n != 1 {
		t.Errorf("got %d warnings of a stopped mirror, want 1: %v", n, logs.All())
	}
}

// faulty fails reads of jobs with an error that is not one of the file.
type faulty struct {
	feed.Jobs

	on atomic.Bool
}

func (f *faulty) Read(ctx context.Context, tenant string, ids []string, each func([]mirror.Job) error) error {
	if f.on.Load() {
		return errors.New("a record of another release")
	}
	return f.Jobs.Read(ctx, tenant, ids, each)
}

// TestOtherErrorsKeepTheFileOpen: searches read the rows while the feed cannot go on.
func TestOtherErrorsKeepTheFileOpen(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, "mail", 20, nil)
	m, err := mirror.New(mirror.Config{Dir: f.dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	jobs := &faulty{Jobs: f.broker.Records()}
	out := f.startWith(t, m, jobs, feed.Config{Retry: 10 * time.Millisecond})
	f.equal(t, out, 20)
	before := m.Reader()
	jobs.on.Store(true)
	f.work(t, "mail", 5, succeed)
	stopped(t, out, "another release")
	if now := m.Reader(); now != before {
		t.Errorf("got the readers %p, want those of before, %p", now, before)
	}
	jobs.on.Store(false)
	f.equal(t, out, 20)
	if now := m.Reader(); now != before {
		t.Errorf("got the readers %p after the failure, want those of before, %p", now, before)
	}
}
