package feed_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
)

// TestKilledProcessLosesNothing: a process that fills the mirror is killed at random moments while jobs
// change. The file opens again each time, and in the end every row equals its record.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const kills, chunk = 8, 100
	jobs := 0
	for i := range kills {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), childDir+"="+f.dir, childURL+"="+f.server.URL)
		process.Stderr = os.Stderr
		if err := process.Start(); err != nil {
			t.Fatalf("Start: %v", err)
		}
		before := modified(f.dir)
		var work sync.WaitGroup
		for _, recorded := range []string{"all", "ends", "off"} {
			jobs += chunk
			work.Go(func() {
				f.enqueue(t, recorded, chunk, large)
				f.events(t, recorded, recorded)
				f.work(t, recorded, chunk/2, func(j *api.FetchedJob) string {
					if strings.HasSuffix(j.ID, "7") {
						return "connection refused"
					}
					return ""
				})
			})
		}
		eventually(t, "a process that writes", func() string {
			if now := modified(f.dir); !now.After(before) {
				return fmt.Sprintf("the file of %v", now)
			}
			return ""
		})
		moment := time.NewTimer(time.Duration(rand.IntN(1+60*i)) * time.Millisecond)
		<-moment.C // anywhere in its work
		if err := process.Process.Kill(); err != nil {
			t.Fatalf("Kill: %v", err)
		}
		_ = process.Wait() // it was killed
		work.Wait()
	}
	m, err := mirror.New(mirror.Config{Dir: f.dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, why, err := m.Open(t.Context()); err != nil || why != "" {
		t.Fatalf("Open: got an empty file because %q, error %v, want the file of the killed process", why, err)
	}
	if err := m.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	f.equal(t, f.run(t, feed.Config{BusyRate: 20_000}), jobs)
}

// modified returns when the files of a mirror were written last.
func modified(dir string) (last time.Time) {
	for _, name := range []string{"mirror.db", "mirror.db-wal"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// TestDamagedPagesAreRebuilt: pages that are overwritten while the mirror runs, or while it does not,
// lead to a file that equals the store.
func TestDamagedPagesAreRebuilt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.enqueue(t, "mail", 500, large)
	m := f.run(t, feed.Config{})
	f.equal(t, m, 500)
	for _, running := range []bool{false, true} {
		if !running {
			m.stop()
		}
		damage(t, filepath.Join(f.dir, "mirror.db"))
		if !running {
			m = f.run(t, feed.Config{})
		}
		m.Rebuild() // so that the pages are read soon
		f.equal(t, m, 500)
	}
}

// damage overwrites most pages of a file, but the first.
func damage(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("OpenFile: %v", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		t.Fatalf("Stat: %v", err)
	}
	garbage := make([]byte, 4096)
	for at := int64(4096); at < info.Size(); at += 2 * 4096 {
		for i := range garbage {
			garbage[i] = byte(rand.Uint32())
		}
		if _, err := file.WriteAt(garbage, at); err != nil {
			t.Fatalf("WriteAt: %v", err)
		}
	}
}
