package search

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

const testTenant = "t_acme01"

// testView is a file with the schema of the mirror.
type testView struct {
	db, writer *sql.DB
	taken      map[int64]bool
}

func (v *testView) Reader() *sql.DB      { return v.db }
func (v *testView) State() search.Mirror { return search.Mirror{} }
func (v *testView) Report(error)         {}

// openView returns an empty view.
func openView(tb testing.TB) *testView {
	tb.Helper()
	schema, err := os.ReadFile("../schema.sql")
	if err != nil {
		tb.Fatalf("ReadFile: %v", err)
	}
	path := "file:" + url.PathEscape(filepath.Join(tb.TempDir(), "mirror.db"))
	open := func(query string) *sql.DB {
		db, err := sql.Open("sqlite", path+query)
		if err != nil {
			tb.Fatalf("Open: %v", err)
		}
		tb.Cleanup(func() { _ = db.Close() })
		return db
	}
	v := &testView{writer: open("?_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=cache_size(-65536)"), taken: map[int64]bool{}}
	v.writer.SetMaxOpenConns(1)
	if _, err := v.writer.ExecContext(tb.Context(), string(schema)); err != nil {
		tb.Fatalf("ExecContext: %v", err)
	}
	v.db = open("?mode=ro&_pragma=query_only(1)&_pragma=cache_size(-8192)")
	v.db.SetMaxOpenConns(8)
	return v
}

// orNull returns nil for the zero value.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// row returns a row for a record, and marks it as taken.
func (v *testView) row(ms int64, id string) int64 {
	row := mirror.RowOf(ms, id)
	for v.taken[row] {
		row++
	}
	v.taken[row] = true
	return row
}

func lastError(job *api.Job) string {
	if len(job.Errors) == 0 {
		return ""
	}
	return job.Errors[len(job.Errors)-1].Error
}

// addJobs writes jobs of a tenant as the feed does.
func (v *testView) addJobs(tb testing.TB, tenant string, added []api.Job) {
	tb.Helper()
	tx, err := v.writer.BeginTx(tb.Context(), nil)
	if err != nil {
		tb.Fatalf("BeginTx: %v", err)
	}
	exec := func(sql string) func(args ...any) {
		stmt, err := tx.PrepareContext(tb.Context(), sql)
		if err != nil {
			tb.Fatalf("PrepareContext: %v", err)
		}
		return func(args ...any) {
			if _, err := stmt.ExecContext(tb.Context(), args...); err != nil {
				tb.Fatalf("ExecContext: %v", err)
			}
		}
	}
	insert := exec("INSERT INTO jobs VALUES (" + strings.Repeat("?,", 24) + "?)")
	tag := exec("INSERT INTO job_tags VALUES (?,?,?,?)")
	words := exec("INSERT INTO job_words (rowid, tenant, id, queue, payload, tags, error, result) VALUES (?,?,?,?,?,?,?,?)")
	rows := make([]int64, len(added))
	order := make([]int, len(added))
	for i := range added {
		rows[i], order[i] = v.row(added[i].CreatedAtMS, added[i].ID), i
	}
	slices.SortFunc(order, func(a, b int) int { return int(min(1, max(-1, rows[a]-rows[b]))) })
	for _, i := range order {
		job, row := &added[i], rows[i]
		doc, err := json.Marshal(job)
		if err != nil {
			tb.Fatalf("Marshal: %v", err)
		}
		function, _ := strings.CutPrefix(job.Queue, api.FunctionQueuePrefix)
		if function == job.Queue {
			function = ""
		}
		insert(row, tenant, job.ID, job.Namespace, job.Queue, string(job.State), job.Priority.Rank(), job.Attempt, orNull(job.WorkerID), orNull(job.Host),
			orNull(job.BatchID), orNull(job.ChainID), orNull(job.ParentID), orNull(job.ActivationID), orNull(function), orNull(job.UniqueKey), "",
			orNull(job.DeadReason), orNull(lastError(job)), job.CreatedAtMS, orNull(job.StartedAtMS), orNull(job.DueAtMS), orNull(job.EndedAtMS), job.StateSinceMS, doc)
		text := ""
		for key, value := range job.Tags {
			tag(row, tenant, key, value)
			text += key + " " + value + " "
		}
		words(row, mirror.TenantWord(tenant), job.ID, job.Queue, string(job.Payload), text, lastError(job), string(job.Result))
	}
	if err := tx.Commit(); err != nil {
		tb.Fatalf("Commit: %v", err)
	}
}

// jobID returns the id of the n-th job of a test.
func jobID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }
