package mirror

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"

	"github.com/codesous/sous/api"
)

// MaxBatch is the largest number of records of a Batch. Rows of a million jobs are in the order of
// their creation, but their tags and durations are anywhere in the indexes: the more rows a
// transaction has, the fewer pages it writes for each.
const MaxBatch = 16 << 10

// Job is a job as the store had it. A nil View means that it has none any more.
type Job struct {
	Tenant, ID string
	// Run is the version of the record, which changes with each step of the job.
	Run  string
	View *api.Job
	// Doc is View in JSON, as the API returns it.
	Doc []byte
}

// Activation is an activation as the store had it. A nil View means that it has none any more.
type Activation struct {
	Tenant, ID string
	View       *api.Activation
	// Doc is View in JSON, as the API returns it.
	Doc []byte
}

// Batch has the records and notes that one transaction writes.
type Batch struct {
	Jobs        []Job
	Activations []Activation
	// Positions are positions in the logs of tenants up to which the records of this batch and of
	// those before it are in the rows.
	Positions map[string]string
	// Notes are notes of the feed to store, by name.
	Notes map[string]string
	// Force writes rows also where they are as they should be.
	Force bool
}

// Applied counts the rows that a batch changed.
type Applied struct{ Written, Removed, Unchanged int }

// Add adds the counts of b.
func (a *Applied) Add(b Applied) {
	a.Written, a.Removed, a.Unchanged = a.Written+b.Written, a.Removed+b.Removed, a.Unchanged+b.Unchanged
}

// errClosed is the error of operations without a file.
var errClosed = errors.New("mirror: the file is not open")

// Apply writes a batch in one transaction: all of it or nothing. The order of records in it does not
// matter. A batch that is applied again changes nothing. ctx ends no transaction that has begun. A
// mirror without room refuses the batch, see Room. For errors, see Damaged, Full and Broken.
func (m *Mirror) Apply(ctx context.Context, b *Batch) (Applied, error) {
	if err := m.Room(ctx); err != nil {
		return Applied{}, err
	}
	return m.apply(ctx, b)
}

// Trim is Apply for a batch that only removes rows: it is written also where there is no room, since
// it makes room.
func (m *Mirror) Trim(ctx context.Context, b *Batch) (done Applied, err error) {
	f, bound := m.opened(), m.cfg.pages()
	if f == nil {
		return Applied{}, errClosed
	}
	if bound > 0 {
		if _, err := f.writer.ExecContext(ctx, "PRAGMA "+maxPages(bound+trimPages)); err != nil {
			return Applied{}, err
		}
		defer func() {
			_, other := f.writer.ExecContext(context.WithoutCancel(ctx), "PRAGMA "+maxPages(bound))
			err = errors.Join(err, other)
		}()
	}
	return m.apply(ctx, b)
}

func (m *Mirror) apply(ctx context.Context, b *Batch) (Applied, error) {
	f := m.opened()
	if f == nil {
		return Applied{}, errClosed
	}
	if err := ctx.Err(); err != nil {
		return Applied{}, err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := f.writer.BeginTx(ctx, nil)
	if err != nil {
		return Applied{}, m.failed(err)
	}
	w := &write{ctx: ctx, tx: tx, s: f.write.in(ctx, tx)}
	err = w.all(b)
	if err != nil {
		rollback := tx.Rollback()
		if Full(err) { // SQLite has rolled back already
			rollback = nil
		}
		return Applied{}, m.failed(errors.Join(err, rollback))
	}
	if err := tx.Commit(); err != nil {
		return Applied{}, m.failed(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f.rows.jobs += w.rows.jobs
	f.rows.activations += w.rows.activations
	return w.counts, nil
}

// write is a transaction in progress.
type write struct {
	ctx    context.Context //nolint:containedctx // of the transaction
	tx     *sql.Tx
	s      *statements
	counts Applied
	rows   counts // that were added, less those that were removed
	tags   []tag  // to insert
}

func (w *write) all(b *Batch) error {
	if err := w.jobs(b.Jobs, b.Force); err != nil {
		return err
	}
	if err := w.activations(b.Activations, b.Force); err != nil {
		return err
	}
	for tenant, position := range b.Positions {
		if err := w.exec(w.s.position, tenant, position); err != nil {
			return err
		}
	}
	for name, value := range b.Notes {
		if err := w.exec(w.s.note, name, value); err != nil {
			return err
		}
	}
	return nil
}

func (w *write) exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(w.ctx, args...)
	return err
}

// insert inserts the row of values, of which the first is its number, or one with the first free number
// after that. It returns the number.
func (w *write) insert(s *sql.Stmt, values []any) (row int64, err error) {
	for row = values[0].(int64); ; row++ {
		values[0] = row
		result, err := s.ExecContext(w.ctx, values...)
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err != nil || n > 0 {
			return row, err
		}
	}
}

// byTenant groups the indexes of records by their tenants, and returns them in an order that is the
// same each time.
func byTenant[T any](records []T, tenant func(*T) string) (tenants []string, of map[string][]int) {
	of = map[string][]int{}
	for i := range records {
		t := tenant(&records[i])
		of[t] = append(of[t], i)
	}
	return slices.Sorted(maps.Keys(of)), of
}

// last leaves of several records with one id only the last, and sorts by row: the full-text index
// begins a new segment with each row that is less than the one before.
func last[T any](records []T, key func(*T) [2]string, row func(*T) int64) []T {
	at := make(map[[2]string]int, len(records))
	out := records[:0:0]
	for i := range records {
		k := key(&records[i])
		if j, known := at[k]; known {
			out[j] = records[i]
			continue
		}
		at[k] = len(out)
		out = append(out, records[i])
	}
	type numbered struct {
		row int64
		of  T
	}
	sorted := make([]numbered, len(out))
	for i := range out {
		sorted[i] = numbered{row(&out[i]), out[i]}
	}
	slices.SortStableFunc(sorted, func(a, b numbered) int { return cmp.Compare(a.row, b.row) })
	for i := range sorted {
		out[i] = sorted[i].of
	}
	return out
}

// null returns nil for an empty text, which is stored as NULL.
func null(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// nullMS returns nil for no time.
func nullMS(ms int64) any {
	if ms == 0 {
		return nil
	}
	return ms
}
