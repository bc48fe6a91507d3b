package tasks

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/statestore"
)

// List selects a page of a tenant's tasks that have not ended.
type List struct {
	Tenant    string
	TaskType  string // "" for all
	Namespace string // "" for all
	Stuck     bool   // only tasks whose workers have not reported in time
	Cursor    string // the next cursor of the page before, "" for the first page
	Limit     int    // at most api.MaxPageLimit, 0 for api.DefaultPageLimit
}

// listReads bounds the records that one page reads.
const listReads = 2000

// List returns a page of the tasks that have not ended, in the order of their last changes,
// without their payloads. next is "" at the end, else the cursor of the page that follows. A
// page may be shorter than the limit, even empty, and still have a next one. A task that
// changes meanwhile may be listed twice. Error: CodeValidationCursor.
func (t *Tasks) List(ctx context.Context, l List) (items []api.Task, next string, err error) {
	from, err := parsePosition(l.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit, before := storage.PageLimit(l.Limit), int64(math.MaxInt64)
	if l.Stuck {
		before = youngest(t.store.NowMS())
	}
	read := 0
	for r, err := range t.scan(ctx, l.Tenant, l.TaskType, from, before) {
		if err != nil {
			return nil, "", err
		}
		if len(items) == limit || read == listReads {
			return items, from.String(), nil
		}
		read++
		from = positionOf(r)
		task := t.show(r)
		if l.Stuck && !task.Stuck || l.Namespace != "" && l.Namespace != task.Namespace {
			continue
		}
		task.Payload = nil
		items = append(items, *task)
	}
	return items, "", nil
}

// youngest returns a moment after which no task has changed that is stuck at now: the shortest
// timeout is api.MinTaskTimeoutMS. Reads of stuck tasks end there.
func youngest(now int64) int64 { return now - api.MinTaskTimeoutMS + 1 }

// scan iterates over a tenant's tasks that have not ended, in the order of their last changes:
// those behind from that changed before the moment before. It yields an error for a record that
// cannot be read, and continues.
func (t *Tasks) scan(ctx context.Context, tenant, taskType string, from position, before int64) iter.Seq2[*record, error] {
	filter := statestore.Filter{Field: fieldUpdatedAt, Op: statestore.Less, Value: strconv.AppendInt(nil, before, 10), Except: storage.TaskEnded()}
	if from != (position{}) { // a filter bounds one side; the loop below bounds the other
		filter.Op, filter.Value = statestore.Greater, strconv.AppendInt(nil, from.updatedAt-1, 10)
	}
	return func(yield func(*record, error) bool) {
		for entry, err := range t.states.Scan(ctx, t.store.TaskKey(tenant, taskType, ""), &filter) {
			if err != nil {
				yield(nil, fmt.Errorf("list tasks: %w", err))
				return
			}
			r, err := parse(tenant, entry.Record)
			if err == nil && r.UpdatedAtMS >= before {
				return
			}
			if err == nil && !from.before(r) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// position is the position of a task in the order of changes: by its last change, then by its
// key.
type position struct {
	updatedAt int64
	name      string // type:id, as its key ends
}

func positionOf(r *record) position { return position{r.UpdatedAtMS, r.TaskType + ":" + r.TaskID} }

func (p position) before(r *record) bool {
	of := positionOf(r)
	return cmp.Or(cmp.Compare(p.updatedAt, of.updatedAt), cmp.Compare(p.name, of.name)) < 0
}

func (p position) String() string { return strconv.FormatInt(p.updatedAt, 10) + " " + p.name }

// parsePosition parses the result of String; "" is the beginning.
func parsePosition(s string) (position, error) {
	if s == "" {
		return position{}, nil
	}
	at, name, ok := strings.Cut(s, " ")
	updatedAt, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || updatedAt < 1 || name == "" {
		return position{}, api.Errorf(api.CodeValidationCursor, "the cursor is not one of this list").
			WithFields(api.FieldError{Path: "cursor", Message: "must be next_cursor of a page of the same list"})
	}
	return position{updatedAt, name}, nil
}
