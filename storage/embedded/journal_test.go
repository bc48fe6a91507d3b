package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fullDisk stores half of each write while it is full.
type fullDisk struct {
	*os.File
	full, stuck bool
}

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if !d.full {
		return d.File.Write(p)
	}
	n, err := d.File.Write(p[:len(p)/2])
	return n, errors.Join(errFull, err)
}

func (d *fullDisk) Truncate(size int64) error {
	if d.stuck {
		return errFull
	}
	return d.File.Truncate(size)
}

// Records that are written before and after the disk was full can be read again; if the
// partial write cannot be removed, at least the records before it.
func TestJournalOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, stuck := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "journal")
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatalf("os.OpenFile: %v", err)
		}
		disk := &fullDisk{File: file, stuck: stuck}
		j := &journal{file: disk, scripts: map[string]string{}}
		now := time.UnixMilli(1_730_000_000_000)
		want := []string{"before"}
		for _, step := range []struct {
			text string
			full bool
		}{{"before", false}, {"lost", true}, {"after", false}} {
			disk.full = step.full
			err := j.append([]string{"SET", "k", step.text}, now)
			if refused := step.full || stuck && step.text == "after"; (err != nil) != refused {
				t.Errorf("stuck %v: append of %q: got error %v, want an error: %v", stuck, step.text, err, refused)
			}
		}
		if !stuck {
			want = append(want, "after")
		}
		if err := file.Close(); err != nil {
			t.Fatalf("file.Close: %v", err)
		}
		var got []string
		if err := replay(path, func(_ time.Time, args []string) { got = append(got, args[2]) }); err != nil {
			t.Errorf("stuck %v: %v", stuck, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("stuck %v: replayed commands differ (-want +got):\n%s", stuck, d)
		}
	}
}
