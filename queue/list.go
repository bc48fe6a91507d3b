package queue

import (
	"context"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/queue/internal/jobstore"
)

// pageLimit keeps a page's size within bounds; zero means the default.
func pageLimit(limit int) int {
	if limit <= 0 {
		return api.DefaultPageLimit
	}
	return min(limit, api.MaxPageLimit)
}

// pageOf sorts names and gives the first limit behind after, and what to pass as
// after for the rest.
func pageOf(names []string, after string, limit int) (page []string, next string) {
	slices.Sort(names)
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	names = names[from:]
	if len(names) > limit {
		return names[:limit], names[limit-1]
	}
	return names, ""
}

// List is a page of a queue's jobs.
type List struct {
	Tenant, Namespace, Queue string
	State                    api.JobState
	Tag, TagValue            string // filters, "" for any
	Cursor                   string // of the page before
	Limit                    int
}

// listBudget bounds how many jobs one page looks at where a filter leaves some
// out: such a page may be short and still go on.
const listBudget = 2000

// List gives jobs of one state without their errors: the ended ones newest first,
// the others in the order in which their turn comes. next is "" at the end. A
// queue that does not exist is empty.
func (b *Broker) List(ctx context.Context, l List) (items []api.Job, next string, err error) {
	if !slices.Contains(api.JobStates(), l.State) {
		return nil, "", api.InvalidField("state", "must be a job's state")
	}
	q := jobstore.Queue{Tenant: l.Tenant, Namespace: l.Namespace, Name: l.Queue}
	limit := pageLimit(l.Limit)
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
			ids[i] = at.Id
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
			j, err := r.View(nil)
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

func (l *List) matches(r *jobstore.Record) bool {
	if l.Tag == "" {
		return true
	}
	value, ok := r.Spec.Tags[l.Tag]
	return ok && (l.TagValue == "" || l.TagValue == value)
}
