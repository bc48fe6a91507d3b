package queue

import (
	"context"
	"slices"

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

// List returns jobs of one state without their errors: ended jobs newest first, others in the
// order in which they are served. next is the cursor of the next page, "" at the end. A page
// that has 8 MiB of jobs, or for which 32 MiB were read, ends there: it may be short, or empty,
// and still have a next. A queue that does not exist is empty. Errors: CodeInvalid,
// CodeValidationCursor, CodeStoreUnavailable.
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
	found, position, err := b.jobs.List(ctx, q, l.State, jobstore.Filter{Tag: l.Tag, TagValue: l.TagValue, ID: l.ID}, position, limit)
	if err != nil {
		return nil, "", err
	}
	for _, r := range found {
		items = append(items, *r.View(l.Tenant))
	}
	if position != nil {
		next = position.String()
	}
	return items, next, nil
}
