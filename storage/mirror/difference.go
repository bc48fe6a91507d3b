package mirror

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/codesous/sous/api"
)

// OpenReader opens the file in a folder for reading, while another process may write it. It is for
// tests and for tools.
func OpenReader(dir string) (*sql.DB, error) {
	return sql.Open("sqlite", dsn(filepath.Join(dir, fileName), readerCacheKiB, "query_only(1)"))
}

// JobDifference returns how the rows of a job differ from what Apply writes for it, "" if they do not.
// It is for tests: they compare a mirror with its store.
func JobDifference(ctx context.Context, db *sql.DB, j Job) (string, error) {
	row, got, err := readRow(ctx, db, `SELECT row, tenant, id, namespace, queue, state, priority, attempt, worker_id, host, batch_id, chain_id, parent_id,
		activation_id, function, unique_key, run, dead_reason, error, created_ms, started_ms, due_ms, ended_ms, since_ms, doc FROM jobs WHERE tenant = ? AND id = ?`, j.Tenant, j.ID)
	if err != nil || j.View == nil {
		return presence(row, false), err
	}
	if row == 0 {
		return presence(row, true), nil
	}
	if at := differs(got, jobValues(row, &j)); at != "" {
		return at, nil
	}
	want := []string{}
	for _, key := range slices.Sorted(maps.Keys(j.View.Tags)) {
		want = append(want, "tag "+key+"="+j.View.Tags[key])
	}
	for i := range j.View.Errors {
		want = append(want, fmt.Sprint("error ", j.View.Errors[i].Attempt, " ", j.View.Errors[i].AtMS, " ", j.View.Errors[i].Error))
	}
	var parts []string
	for _, query := range []string{
		"SELECT 'tag ' || key || '=' || value FROM job_tags WHERE tenant = ?2 AND row = ?1 ORDER BY key",
		"SELECT 'error ' || attempt || ' ' || at_ms || ' ' || error FROM job_errors WHERE row = ?1 AND ?2 != '' ORDER BY at_ms, attempt",
	} {
		more, err := readTexts(ctx, db, query, row, j.Tenant)
		if err != nil {
			return "", err
		}
		parts = append(parts, more...)
	}
	slices.Sort(want)
	slices.Sort(parts)
	if !slices.Equal(parts, slices.Compact(want)) {
		return fmt.Sprintf("got the parts %q, want %q", parts, want), nil
	}
	return wordsDifference(ctx, db, "job_words", row, j.Tenant)
}

// ActivationDifference is JobDifference for an activation.
func ActivationDifference(ctx context.Context, db *sql.DB, a Activation) (string, error) {
	row, got, err := readRow(ctx, db, `SELECT row, tenant, id, namespace, function, version, status, trigger, job_id, request_id, error_type, error,
		start_ms, end_ms, duration_ms, cpu_ms, memory_peak, egress, doc FROM activations WHERE tenant = ? AND id = ?`, a.Tenant, a.ID)
	if err != nil || a.View == nil {
		return presence(row, false), err
	}
	if row == 0 {
		return presence(row, true), nil
	}
	if at := differs(got, activationValues(row, &a)); at != "" {
		return at, nil
	}
	return wordsDifference(ctx, db, "activation_words", row, a.Tenant)
}

func presence(row int64, want bool) string {
	switch {
	case row == 0 && want:
		return "got no row, want one"
	case row != 0 && !want:
		return "got a row, want none: the record is gone"
	}
	return ""
}

// wordsDifference checks that the full-text search finds a row once.
func wordsDifference(ctx context.Context, db *sql.DB, table string, row int64, tenant string) (string, error) {
	found, err := readTexts(ctx, db, "SELECT rowid FROM "+table+" WHERE rowid = ? AND "+table+" MATCH ?", row, "tenant:"+TenantWord(tenant))
	if err != nil || len(found) == 1 {
		return "", err
	}
	return fmt.Sprintf("got %d entries of words, want 1", len(found)), nil
}

// readRow reads a row: its number, 0 without one, and the values of its columns, of which the number is
// the first.
func readRow(ctx context.Context, db *sql.DB, query string, args ...any) (row int64, values []any, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return 0, nil, errors.Join(err, rows.Err())
	}
	values = make([]any, len(columns))
	places := make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	if err := rows.Scan(places...); err != nil {
		return 0, nil, err
	}
	row, _ = values[0].(int64)
	return row, values, nil
}

func readTexts(ctx context.Context, db *sql.DB, query string, args ...any) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, rows.Err()
}

// differs returns the first column whose value differs, "" for none.
func differs(got, want []any) string {
	for i := range want {
		if fmt.Sprint(plain(got[i])) != fmt.Sprint(plain(want[i])) {
			return fmt.Sprintf("column %d: got %v, want %v", i, plain(got[i]), plain(want[i]))
		}
	}
	return ""
}

// plain returns values of the driver and of the writer in one form.
func plain(value any) any {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case api.JobState:
		return string(v)
	}
	return value
}
