// Package search reads the mirror: pages of jobs and activations in any combination of filters,
// counts, and series for charts.
//
// Text of a caller never becomes SQL: filters are parameters, and full-text queries are parsed
// (words.go) and written again in quotes. jobs.go and activations.go turn a query into a selection,
// which has the conditions of a row and the sources, which are indexes that lead to all rows of the
// selection. plan.go chooses a source and reads a page:
//
//   - In the order of creation each source is in the order of the page, since rows are. The source
//     with the fewest rows leads, and the page ends where it is full or has examined maxExamined
//     rows.
//   - In another order, a source with fewer than fewRows rows is read as a whole and sorted. If none
//     has so few, the index of the order leads.
//
// So the work of a page is bounded, whatever it selects. The bound of the time is a deadline.
package search

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
	"github.com/codesous/sous/storage/mirror"
)

// DefaultDeadline bounds the time of a search.
const DefaultDeadline = 2 * time.Second

// View is the mirror that is searched.
type View interface {
	// Reader returns connections that only read, nil while there is no view.
	Reader() *sql.DB
	// State returns how current the view is.
	State() search.MirrorState
	// Report receives the error of a statement, which may be that of a damaged file.
	Report(err error)
}

// Of returns the view of a mirror, nil for a nil one.
func Of(m *mirror.Mirror) View {
	if m == nil {
		return nil
	}
	return mirrorView{m}
}

type mirrorView struct{ *mirror.Mirror }

func (v mirrorView) State() search.MirrorState {
	status := v.Status()
	return search.MirrorState{LagMS: status.LagMS, Rebuilding: status.Rebuilding}
}

// Searcher answers searches. It is safe for concurrent use.
type Searcher struct {
	view     View
	deadline time.Duration
	bounds   bounds
	turns    *turns
}

// New returns a searcher of view. deadline bounds the time of each search (0: DefaultDeadline). A nil
// view answers CodeMirrorUnavailable.
func New(view View, deadline time.Duration) *Searcher {
	if deadline <= 0 {
		deadline = DefaultDeadline
	}
	return &Searcher{view, deadline, defaultBounds, newTurns()}
}

// State returns how current the view is. Errors: CodeMirrorUnavailable.
func (s *Searcher) State() (*search.MirrorState, error) {
	if _, err := s.reader(); err != nil {
		return nil, err
	}
	state := s.view.State()
	return &state, nil
}

// reader returns the connections of the view.
func (s *Searcher) reader() (*sql.DB, error) {
	if s == nil || s.view == nil {
		return nil, api.Errorf(api.CodeMirrorUnavailable, "this replica keeps no mirror of jobs and activations; start one with the role mirror")
	}
	db := s.view.Reader()
	if db == nil {
		return nil, api.Errorf(api.CodeMirrorUnavailable, "the mirror of this replica is not open; its log has the cause")
	}
	return db, nil
}

// Result is a page of records and the position of the next one, "" at the end.
type Result[T any] struct {
	Items []T
	Next  string
	Count *search.MatchCount // nil unless it was asked for
}

// run calls do with a transaction that sees one state of the view, and returns at the deadline in any
// case. SQLite interrupts its statements then, but not the work of one step within the full-text index,
// so do may still run: until it has ended it has its turn, of which each tenant has a few. Errors:
// CodeMirrorUnavailable, CodeSearchDeadline, CodeCapacityLimit, those of do.
func (s *Searcher) run(ctx context.Context, tenant string, do func(context.Context, *sql.Tx) error) error {
	db, err := s.reader()
	if err != nil {
		return err
	}
	ended, err := s.turns.take(ctx, tenant)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.deadline)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		defer ended()
		done <- transaction(bounded, db, do)
	}()
	select {
	case err = <-done:
	case <-bounded.Done():
		select {
		case err = <-done: // it may have ended in time
		default:
			err = bounded.Err()
		}
	}
	var known *api.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil && !errors.Is(bounded.Err(), context.Canceled):
		return api.Wrap(api.CodeSearchDeadline, err, "the search took longer than "+s.deadline.String()+"; select fewer records, such as those of a shorter time")
	}
	s.view.Report(err)
	return api.Wrap(api.CodeMirrorUnavailable, err, "the mirror of this replica cannot be read; its log has the cause")
}

// transaction calls do with a transaction.
func transaction(ctx context.Context, db *sql.DB, do func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	err = do(ctx, tx)
	_ = tx.Rollback() // nothing was written
	return err
}

// position is a place in a list: behind the row with that key.
type position struct{ key, row int64 }

func (p position) String() string {
	return strconv.FormatInt(p.key, 10) + ":" + strconv.FormatInt(p.row, 10)
}

// Behind returns the cursor behind a row in a list in the order of creation.
func Behind(row int64) string { return position{row, row}.String() }

// Back returns the position that is rows before a cursor of a list in ascending order of creation, and
// its row. A record may have another row in the mirror of another replica, where rows close by were
// taken: a reader that continues there begins some rows before. Errors: CodeValidationCursor.
func Back(cursor string, rows int64) (before string, row int64, err error) {
	at, err := parsePosition(cursor)
	if err != nil || at == nil {
		return "", 0, err
	}
	start := max(0, at.row-rows)
	return Behind(start), at.row, nil
}

// parsePosition parses the text of a position, nil for "". Errors: CodeValidationCursor.
func parsePosition(text string) (*position, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // documented: no position
	}
	first, second, _ := strings.Cut(text, ":")
	key, err := strconv.ParseInt(first, 10, 64)
	row, other := strconv.ParseInt(second, 10, 64)
	p := position{key, row}
	if err != nil || other != nil || p.String() != text {
		return nil, api.Errorf(api.CodeValidationCursor, "the cursor is not one that this list returned")
	}
	return &p, nil
}
