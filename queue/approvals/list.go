package approvals

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/queue/internal/jobstore"
)

const (
	// listEntries and listBytes bound the approvals and the bytes of their jobs that a page reads.
	listEntries = 1000
	listBytes   = 32 << 20
	listStep    = 100
)

// Filter selects approvals.
type Filter struct {
	State            approval.State // by default pending
	Namespace, Queue string         // "" for all
	// Mine are the standings of a voter: only approvals on which it has not voted, and may.
	Mine *Ballot
}

// List returns up to limit approvals that pass f, of those behind position, and the position of the next
// page, "" at the end. Pending ones come oldest first, others by the time of the decision, newest first.
// A page also ends when it has read 1,000 approvals, or jobs of 32 MiB: it may be short, even empty.
// Errors: CodeValidationCursor, CodeStoreUnavailable.
//
// Entries of jobs that have no such approval are removed, if the job has not changed.
func (a *Approvals) List(ctx context.Context, tenant string, f Filter, position string, limit int) (items []approval.Item, next string, err error) {
	from, err := parsePosition(position)
	if err != nil {
		return nil, "", err
	}
	items = []approval.Item{}
	key, bytes := a.store.JobKeys(tenant).Approvals(), 0
	for entries := 0; entries < listEntries && bytes < listBytes; {
		page, err := a.page(ctx, key, f.State, from)
		if err != nil || len(page) == 0 {
			return items, "", err
		}
		ids := make([]string, len(page))
		for i := range page {
			ids[i], _ = page[i].Member.(string)
		}
		at := 0
		for part, err := range a.jobs.Parts(ctx, tenant, ids, jobstore.FieldHoldReason) {
			if err != nil {
				return nil, "", err
			}
			for _, r := range part {
				from = &page[at]
				at++
				entries++
				if r == nil {
					r = &jobstore.Record{ID: ids[at-1]}
				}
				bytes += r.Size
				item, ok := view0(r)
				if !ok || (item.State == approval.Pending) != (from.Score >= 0) {
					if err := a.drop(ctx, tenant, key, r); err != nil {
						return nil, "", err
					}
					continue
				}
				if !f.matches(r, &item) {
					continue
				}
				items = append(items, item)
				if len(items) == limit {
					return items, formatPosition(from), nil
				}
			}
			if bytes >= listBytes {
				break
			}
		}
		if at == len(page) && len(page) < listStep {
			return items, "", nil
		}
	}
	return items, formatPosition(from), nil
}

// view0 is view for a job that may be missing.
func view0(r *jobstore.Record) (approval.Item, bool) {
	if r.Spec == nil {
		return approval.Item{}, false
	}
	return view(r)
}

// drop removes the entry of a job unless the job has changed since it was read.
func (a *Approvals) drop(ctx context.Context, tenant, key string, r *jobstore.Record) error {
	_, err := a.jobs.Drop(ctx, jobstore.Queue{Tenant: tenant}, key, []*jobstore.Record{r})
	return err
}

// matches reports whether an approval passes f.
func (f *Filter) matches(r *jobstore.Record, item *approval.Item) bool {
	state := f.State
	if state == "" {
		state = approval.Pending
	}
	if item.State != state || f.Namespace != "" && item.Namespace != f.Namespace || f.Queue != "" && item.Queue != f.Queue {
		return false
	}
	return f.Mine == nil || f.Mine.May(r)
}

// page reads the entries behind from, at most listStep, of those that may have a state.
func (a *Approvals) page(ctx context.Context, key string, state approval.State, from *redis.Z) ([]redis.Z, error) {
	least, most := "0", "+inf"
	if state != "" && state != approval.Pending {
		least, most = "-inf", "(0"
	}
	skip := ""
	if from != nil {
		least = strconv.FormatFloat(from.Score, 'f', -1, 64)
		skip, _ = from.Member.(string)
	}
	var out []redis.Z
	for offset := int64(0); len(out) == 0; offset += listStep {
		page, err := a.store.Client().ZRangeByScoreWithScores(ctx, key, &redis.ZRangeBy{Min: least, Max: most, Offset: offset, Count: listStep}).Result()
		if err != nil {
			return nil, jobstore.Failure(ctx, "read approvals", err)
		}
		for i := range page {
			// Entries of one score are sorted by their members.
			if id, _ := page[i].Member.(string); from == nil || page[i].Score != from.Score || id > skip {
				out = append(out, page[i])
			}
		}
		if len(page) < listStep {
			break
		}
	}
	return out, nil
}

var errPosition = errors.New("approvals: no position")

// parsePosition parses a position, nil for the beginning. CodeValidationCursor.
func parsePosition(position string) (*redis.Z, error) {
	if position == "" {
		return nil, nil //nolint:nilnil // documented
	}
	score, id, ok := strings.Cut(position, " ")
	at, err := strconv.ParseInt(score, 10, 64)
	if !ok || err != nil || api.ValidateJobID(id) != nil {
		return nil, api.Wrap(api.CodeValidationCursor, errPosition, "the cursor is not one that this list returned")
	}
	return &redis.Z{Score: float64(at), Member: id}, nil
}

// formatPosition returns the position behind an entry.
func formatPosition(z *redis.Z) string {
	if z == nil {
		return ""
	}
	id, _ := z.Member.(string)
	return strconv.FormatInt(int64(z.Score), 10) + " " + id
}
