package queue

import (
	"context"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// pageOf sorts names and returns the first limit names after after. next is the value of
// after for the next page, "" at the end.
func pageOf(names []string, after string, limit int) (page []string, next string) {
	slices.Sort(names)
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	return storage.FirstPage(names[from:], limit)
}

// List is a call that reads a page of a queue's jobs. The filters are applied after the read:
// there is no index of tags or of ids.
type List struct {
	Tenant, Namespace, Queue string
	State                    api.JobState
	Tag, TagValue, ID        string // filters, "" for any; the beginning or the end of the id
	Cursor                   string // next of the page before, "" for the first page
	Limit                    int    // at most api.MaxPageLimit, 0 for api.DefaultPageLimit
}

// listBudget is how many jobs the store reads for one page if a filter excludes some. A page
// may therefore be short, or empty, although more follow: only an empty next is the end.
const listBudget = 2000

// List returns jobs of one state without their errors: ended jobs newest first, others in the
// order in which they are served. next is the cursor of the next page, "" at the end. A queue
// that does not exist is empty. Errors: CodeInvalid, CodeValidationCursor,
// CodeStoreUnavailable.
//
// The pages are no snapshot. A job that changes its state between two pages may be missing in
// both lists or be in both, but a job whose entry stays the same is listed exactly once.
func (b *Broker) List(ctx context.Context, l List) (items []api.Job, next string, err error) {
	if !slices.Contains(api.JobStates(), l.State) {
		return nil, "", api.InvalidField("state", "must be the name of a job state")
	}
	q := jobstore.Queue{Tenant: l.Tenant, Namespace: l.Namespace, Name: l.Queue}
	limit := storage.PageLimit(l.Limit)
	position, err := jobstore.ParsePosition(l.Cursor)
	if err != nil {
		return nil, "", err
	}
	for budget := listBudget; budget > 0; budget -= limit {
		step, end, err := b.jobs.Page(ctx, q, l.State, position, limit)
		if err != nil {
			return nil, "", err
		}
		ids := make([]string, len(step))
		for i, at := range step {
			ids[i] = at.ID
		}
		found, err := b.jobs.Load(ctx, l.Tenant, ids, jobstore.DetailFields...)
		if err != nil {
			return nil, "", err
		}
		for i, r := range found {
			position = &step[i]
			if r == nil || r.Run.State != l.State || r.Queue(l.Tenant) != q || !l.matches(r) {
				continue
			}
			j, err := r.View(l.Tenant, nil)
			if err != nil {
				return nil, "", err
			}
			items = append(items, *j)
			if len(items) == limit {
				if end && i == len(found)-1 {
					return items, "", nil
				}
				return items, position.String(), nil
			}
		}
		if end {
			return items, "", nil
		}
	}
	return items, position.String(), nil
}

// matches reports whether r passes the filters.
func (l *List) matches(r *jobstore.Record) bool {
	if with := strings.HasPrefix(r.ID, l.ID) || strings.HasSuffix(r.ID, l.ID); l.Tag == "" || !with {
		return with
	}
	value, ok := r.Spec.Tags[l.Tag]
	return ok && (l.TagValue == "" || l.TagValue == value)
}
