package mirror_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/mirror"
)

const tenant = "t_acme01"

// open returns an open mirror in dir.
func open(t *testing.T, dir string) *mirror.Mirror {
	t.Helper()
	m, err := mirror.New(mirror.Config{Dir: dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// job returns a job in one state as a batch has it.
func job(t *testing.T, id string, state api.JobState, change func(*api.Job)) mirror.Job {
	t.Helper()
	j := &api.Job{ID: id, Namespace: "shop", Queue: "mail", State: state, CreatedAtMS: 1_700_000_000_000, StateSinceMS: 1_700_000_000_001, Payload: json.RawMessage(`{"to":"ada"}`)}
	if change != nil {
		change(j)
	}
	j.JobOptions = j.WithDefaults()
	doc, err := api.EncodeJSON(j)
	if err != nil {
		t.Fatalf("EncodeJSON: %v", err)
	}
	return mirror.Job{Tenant: tenant, ID: id, Run: string(state) + " 1", View: j, Doc: doc}
}

// apply writes a batch, and checks the counts.
func apply(t *testing.T, m *mirror.Mirror, b *mirror.Batch, want mirror.Applied) {
	t.Helper()
	got, err := m.Apply(t.Context(), b)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if got != want {
		t.Errorf("Apply: got %+v, want %+v", got, want)
	}
}

// texts returns the rows of a query, the columns of each with blanks between them.
func texts(t *testing.T, m *mirror.Mirror, query string, args ...any) (out []string) {
	t.Helper()
	rows, err := m.Reader().QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("Query %s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatalf("Columns: %v", err)
	}
	for rows.Next() {
		values, places := make([]string, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			t.Fatalf("Scan: %v", err)
		}
		out = append(out, strings.Join(values, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("Err: %v", err)
	}
	return out
}

// same compares the rows of a query with want.
func same(t *testing.T, m *mirror.Mirror, want []string, query string, args ...any) {
	t.Helper()
	if diff := cmp.Diff(want, texts(t, m, query, args...)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", query, diff)
	}
}

const find = "SELECT j.id FROM job_words AS w JOIN jobs AS j ON j.row = w.rowid WHERE job_words MATCH ? ORDER BY j.id"

// TestJobsAreWrittenChangedAndRemoved: the row of a job, its tags, errors and words follow the job.
func TestJobsAreWrittenChangedAndRemoved(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir())
	tagged := func(j *api.Job) { j.Tags = map[string]string{"team": "blue", "cause": "déjà vu"} }
	pending, other := job(t, "j1", api.JobPending, tagged), job(t, "j2", api.JobPending, nil)
	apply(t, m, &mirror.Batch{Jobs: []mirror.Job{pending, other}, Positions: map[string]string{tenant: "5-0.0"}}, mirror.Applied{Written: 2})
	apply(t, m, &mirror.Batch{Jobs: []mirror.Job{pending, other}}, mirror.Applied{Unchanged: 2})
	same(t, m, []string{"j1"}, find, "tags:vu")
	same(t, m, []string{"j1", "j2"}, find, "payload:ada")

	dead := job(t, "j1", api.JobDead, func(j *api.Job) {
		tagged(j)
		j.Errors = []api.JobError{{Attempt: 1, Error: "connection refused", AtMS: 7}, {Attempt: 2, Error: "no route", AtMS: 9}}
		j.WorkerID, j.DeadReason, j.EndedAtMS = "w1", "attempts", 1_700_000_000_009
	})
	apply(t, m, &mirror.Batch{Jobs: []mirror.Job{pending, dead}}, mirror.Applied{Written: 1})
	same(t, m, []string{"j1 dead no route w1"}, "SELECT id, state, error, worker_id FROM jobs WHERE ended_ms > 0")
	same(t, m, []string{"1 connection refused", "2 no route"}, "SELECT attempt, error FROM job_errors ORDER BY attempt")
	same(t, m, []string{"j1"}, find, "error:refused")
	same(t, m, []string{"cause déjà vu", "team blue"}, "SELECT key, value FROM job_tags ORDER BY key")

	apply(t, m, &mirror.Batch{Jobs: []mirror.Job{{Tenant: tenant, ID: "j1"}, {Tenant: "t_other1", ID: "j2"}}}, mirror.Applied{Removed: 1})
	same(t, m, []string{"j2"}, find, "tenant:"+mirror.TenantWord(tenant))
	same(t, m, nil, "SELECT key FROM job_tags UNION ALL SELECT error FROM job_errors")
	positions, err := m.Positions(t.Context())
	if diff := cmp.Diff(map[string]string{tenant: "5-0.0"}, positions); diff != "" || err != nil {
		t.Errorf("Positions: error %v (-want +got):\n%s", err, diff)
	}
}

// TestRowsOfOneMillisecond: jobs that would have the same row have rows of their own.
func TestRowsOfOneMillisecond(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir())
	b := &mirror.Batch{}
	for range 2 * mirror.MaxBatch {
		b.Jobs = append(b.Jobs, job(t, api.NewJobID(), api.JobPending, nil))
	}
	apply(t, m, b, mirror.Applied{Written: 2 * mirror.MaxBatch})
	apply(t, m, b, mirror.Applied{Unchanged: 2 * mirror.MaxBatch})
}

// TestActivationsAreWritten: the row of an activation follows its record.
func TestActivationsAreWritten(t *testing.T) {
	t.Parallel()
	m := open(t, t.TempDir())
	of := func(status api.Status, failure *api.ActivationError) mirror.Activation {
		v := &api.Activation{ActivationID: "a1", Tenant: tenant, Namespace: "shop", Function: "hello", Status: status, StartMS: 1_700_000_000_000, Error: failure}
		v.Ref.Version = 3
		doc, err := api.EncodeJSON(v)
		if err != nil {
			t.Fatalf("EncodeJSON: %v", err)
		}
		return mirror.Activation{Tenant: tenant, ID: "a1", View: v, Doc: doc}
	}
	running, failed := of(api.StatusRunning, nil), of(api.StatusError, &api.ActivationError{Type: api.ErrException, Message: "no such user"})
	apply(t, m, &mirror.Batch{Activations: []mirror.Activation{running}}, mirror.Applied{Written: 1})
	apply(t, m, &mirror.Batch{Activations: []mirror.Activation{failed}}, mirror.Applied{Written: 1})
	apply(t, m, &mirror.Batch{Activations: []mirror.Activation{failed}}, mirror.Applied{Unchanged: 1})
	same(t, m, []string{"a1 3 error no such user"}, "SELECT id, version, status, error FROM activations")
	same(t, m, []string{"a1"}, "SELECT a.id FROM activation_words AS w JOIN activations AS a ON a.row = w.rowid WHERE activation_words MATCH ?", "error:user")
	apply(t, m, &mirror.Batch{Activations: []mirror.Activation{{Tenant: tenant, ID: "a1"}}}, mirror.Applied{Removed: 1})
	same(t, m, nil, "SELECT id FROM activations")
}

// TestFilesAreReplaced: a file that is damaged, or of another release, is replaced by an empty one.
func TestFilesAreReplaced(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"no database": func(path string) error {
			return os.WriteFile(path, []byte("a text of some length, but no database"), 0o600)
		},
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"deleted": os.Remove,
		"damaged": damageMiddle,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			m := open(t, dir)
			b := &mirror.Batch{}
			for range mirror.MaxBatch {
				b.Jobs = append(b.Jobs, job(t, api.NewJobID(), api.JobPending, nil))
			}
			apply(t, m, b, mirror.Applied{Written: mirror.MaxBatch})
			if err := m.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			if m.Reader() != nil || m.Status().Serves {
				t.Errorf("got a mirror that serves after Close, want none")
			}
			if err := spoil(filepath.Join(dir, "mirror.db")); err != nil {
				t.Fatalf("spoil: %v", err)
			}
			fresh, why, err := m.Open(t.Context())
			if err != nil || !fresh || why == "" {
				t.Fatalf("Open: got fresh %v because %q, error %v, want an empty file with a reason", fresh, why, err)
			}
			same(t, m, []string{"0"}, "SELECT count(*) FROM jobs")
		})
	}
}

// damageMiddle writes over the pages behind the schema.
func damageMiddle(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt([]byte(strings.Repeat("damaged ", int(info.Size()/16))), info.Size()/4)
	}
	return errors.Join(err, f.Close())
}

// TestRowsSurviveACloseAndAnOpen: the next process finds the rows of the one before.
func TestRowsSurviveACloseAndAnOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := open(t, dir)
	apply(t, m, &mirror.Batch{Jobs: []mirror.Job{job(t, "j1", api.JobHeld, nil)}, Notes: map[string]string{"walk": "done"}}, mirror.Applied{Written: 1})
	if err := m.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	fresh, why, err := m.Open(t.Context())
	if err != nil || fresh {
		t.Fatalf("Open: got fresh %v because %q, error %v, want the file of before", fresh, why, err)
	}
	same(t, m, []string{"j1 held"}, "SELECT id, state FROM jobs")
	notes, err := m.Notes(t.Context())
	if err != nil || notes["walk"] != "done" {
		t.Errorf("Notes: got %v, error %v, want the note that was stored", notes, err)
	}
}

// TestOneWriter: a second mirror of the folder is refused, until the first is closed.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "mirror")
	first := open(t, dir)
	second, err := mirror.New(mirror.Config{Dir: dir})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := second.Open(t.Context()); !errors.Is(err, mirror.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open: got error %v, want %v with the folder", err, mirror.ErrInUse)
	}
	if err := first.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if _, _, err := second.Open(t.Context()); err != nil {
		t.Errorf("Open after Close: got error %v, want none", err)
	}
	_ = second.Close()
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "mirror.db"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s: got %v, error %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

// TestFullFile: a file that may not grow refuses a batch as a whole, and keeps what it has.
func TestFullFile(t *testing.T) {
	t.Parallel()
	m, err := mirror.New(mirror.Config{Dir: t.TempDir(), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	written := 0
	for {
		b := &mirror.Batch{}
		for range 200 {
			b.Jobs = append(b.Jobs, job(t, api.NewJobID(), api.JobPending, nil))
		}
		_, err := m.Apply(t.Context(), b)
		if err == nil {
			written += len(b.Jobs)
			continue
		}
		if !mirror.Full(err) || mirror.Damaged(err) {
			t.Fatalf("Apply: got error %v, want that of a full disk", err)
		}
		break
	}
	var got int
	if err := m.Reader().QueryRowContext(t.Context(), "SELECT count(*) FROM jobs").Scan(&got); err != nil || got != written || got == 0 {
		t.Errorf("rows: got %d, error %v, want %d", got, err, written)
	}
}

// TestNilMirror: a replica without the role has a nil mirror, which serves nothing.
func TestNilMirror(t *testing.T) {
	t.Parallel()
	var m *mirror.Mirror
	m.Report(context.Canceled)
	if s := m.Status(); m.Reader() != nil || s.Serves || s.State != mirror.StateStopped {
		t.Errorf("got %+v, want a stopped mirror", s)
	}
}

// TestLogCountsAsRoom: the write-ahead log of a reader that does not end counts for the size of the file,
// and is written back when the reader has ended.
func TestLogCountsAsRoom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := mirror.New(mirror.Config{Dir: dir, MaxBytes: 64 << 20})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	if _, _, err := m.Open(t.Context()); err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	reader, err := m.Reader().BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatalf("BeginTx: %v", err)
	}
	var rows int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM jobs").Scan(&rows); err != nil {
		t.Fatalf("Scan: %v", err)
	}
	// The same rows again and again grow the log, and not the file.
	for i := 0; ; i++ {
		b := &mirror.Batch{}
		for n := range 512 {
			j := job(t, fmt.Sprintf("%08x-0000-4000-8000-000000000000", n), api.JobPending, func(j *api.Job) { j.Attempt = i })
			j.Run = fmt.Sprint(i)
			b.Jobs = append(b.Jobs, j)
		}
		if _, err := m.Apply(t.Context(), b); err != nil {
			t.Fatalf("Apply: %v", err)
		}
		err := m.Room(t.Context())
		if mirror.Oversize(err) {
			break
		}
		if err != nil || i == 1000 {
			t.Fatalf("Room: got %v after %d batches, want a log of the largest size", err, i)
		}
	}
	if err := reader.Rollback(); err != nil {
		t.Fatalf("Rollback: %v", err)
	}
	if err := m.Room(t.Context()); err != nil {
		t.Errorf("Room: got %v without the reader, want room", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "mirror.db-wal")); err != nil || info.Size() > 1<<20 {
		t.Errorf("got a log of %v, error %v, want it to be written back", info, err)
	}
}
