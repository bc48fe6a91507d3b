package mirror

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/codesous/sous/api"
)

// Row is a row of jobs or activations, as far as the feed compares it with the store.
type Row struct {
	Row        int64
	Tenant, ID string
	// Run is the version of a job, see Job.
	Run string
	// Status is that of an activation.
	Status string
}

// Positions returns the positions in the logs of all tenants that have one.
func (m *Mirror) Positions(ctx context.Context) (map[string]string, error) {
	return m.pairs(ctx, "SELECT tenant, position FROM positions")
}

// Notes returns the notes of the feed.
func (m *Mirror) Notes(ctx context.Context) (map[string]string, error) {
	return m.pairs(ctx, "SELECT name, value FROM notes")
}

// JobRuns returns the versions of those of a tenant's jobs that have rows, by id.
func (m *Mirror) JobRuns(ctx context.Context, tenant string, ids []string) (map[string]string, error) {
	list, err := api.EncodeJSON(ids)
	if err != nil {
		return nil, err
	}
	return m.pairs(ctx, `SELECT j.id, j.run FROM json_each(?2) AS e CROSS JOIN jobs AS j ON j.tenant = ?1 AND j.id = e.value`, tenant, string(list))
}

// ActivationStatuses returns the statuses of those of a tenant's activations that have rows, by id.
func (m *Mirror) ActivationStatuses(ctx context.Context, tenant string, ids []string) (map[string]string, error) {
	list, err := api.EncodeJSON(ids)
	if err != nil {
		return nil, err
	}
	return m.pairs(ctx, `SELECT a.id, a.status FROM json_each(?2) AS e CROSS JOIN activations AS a ON a.tenant = ?1 AND a.id = e.value`, tenant, string(list))
}

// JobRows returns a page of the rows of jobs behind the row after: those of tenants, or of all for none.
func (m *Mirror) JobRows(ctx context.Context, tenants []string, after int64, limit int) ([]Row, error) {
	return m.tableRows(ctx, "SELECT row, tenant, id, run, '' FROM jobs", tenants, after, limit)
}

// QueueRows returns a page of the rows of a queue's jobs of one state behind the row after.
func (m *Mirror) QueueRows(ctx context.Context, tenant, namespace, queue string, state api.JobState, after int64, limit int) ([]Row, error) {
	return m.rows(ctx, `SELECT row, tenant, id, run, '' FROM jobs INDEXED BY jobs_queue
		WHERE tenant = ? AND queue = ? AND state = ? AND namespace = ? AND row > ? ORDER BY row LIMIT ?`, tenant, queue, string(state), namespace, after, limit)
}

// ActivationRows is JobRows for activations.
func (m *Mirror) ActivationRows(ctx context.Context, tenants []string, after int64, limit int) ([]Row, error) {
	return m.tableRows(ctx, "SELECT row, tenant, id, '', status FROM activations", tenants, after, limit)
}

func (m *Mirror) tableRows(ctx context.Context, query string, tenants []string, after int64, limit int) ([]Row, error) {
	if len(tenants) == 0 {
		return m.rows(ctx, query+" WHERE row > ? ORDER BY row LIMIT ?", after, limit)
	}
	list, err := api.EncodeJSON(tenants)
	if err != nil {
		return nil, err
	}
	return m.rows(ctx, query+" WHERE row > ? AND tenant IN (SELECT value FROM json_each(?)) ORDER BY row LIMIT ?", after, string(list), limit)
}

// ErrMissing is the error of a file that was removed while it was open. Damaged is true for it.
var ErrMissing = errors.New("the file was removed")

// Missing reports whether the file was removed or replaced since it was opened.
func (m *Mirror) Missing() bool {
	f := m.opened()
	if f == nil {
		return false
	}
	now, err := os.Stat(f.path)
	return err != nil || !os.SameFile(f.info, now)
}

func (m *Mirror) rows(ctx context.Context, query string, args ...any) (out []Row, err error) {
	err = m.each(ctx, query, args, func(rows *sql.Rows) error {
		var r Row
		err := rows.Scan(&r.Row, &r.Tenant, &r.ID, &r.Run, &r.Status)
		out = append(out, r)
		return err
	})
	return out, err
}

func (m *Mirror) pairs(ctx context.Context, query string, args ...any) (map[string]string, error) {
	out := map[string]string{}
	err := m.each(ctx, query, args, func(rows *sql.Rows) error {
		var key, value string
		err := rows.Scan(&key, &value)
		out[key] = value
		return err
	})
	return out, err
}

// each calls row with each row of a query.
func (m *Mirror) each(ctx context.Context, query string, args []any, row func(*sql.Rows) error) error {
	f := m.opened()
	if f == nil {
		return errClosed
	}
	rows, err := f.feed.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	for rows.Next() {
		if err := row(rows); err != nil {
			return errors.Join(err, rows.Close())
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}
