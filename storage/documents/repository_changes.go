package documents

import (
	"context"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Feed is a part of a namespace's feed of changes.
type Feed struct {
	Changes []api.DocumentChange
	// Latest is the id of the namespace's last change.
	Latest int64
	// Lost reports that earlier changes were requested that the feed no longer holds. The
	// caller has to read the namespace again.
	Lost bool
}

// Changes reads up to limit changes of a namespace, after the change with the id since (0
// for the start), in the order in which they were made. A namespace that never had documents has
// no changes and Latest 0.
//
// Ids grow by one, but a crash can leave a gap: a write takes its ids before it adds its
// changes. With since 4, the ids found decide:
//
//	5 6 7     nothing is missing
//	6 7       5 is missing. If the feed still has an entry up to 4, a crash prevented 5.
//	          Otherwise the feed was trimmed: Lost
//
// A change may also be in the feed and not have been made, if a crash came between the two. A
// reader that applies changes therefore reads the document, and takes the change as a hint.
func (r *Repository) Changes(ctx context.Context, p storage.DocumentPath, since int64, limit int) (feed Feed, err error) {
	key := r.s.Keys().Documents(p).Changes()
	pipe := r.s.Client().Pipeline()
	latest := pipe.HMGet(ctx, r.s.Keys().DocumentUsage(p.Tenant, p.Install), p.Namespace+":c")
	found := pipe.Do(ctx, "XRANGE", key, since+1, "+", "COUNT", max(limit, 1))
	if _, err := pipe.Exec(ctx); err != nil {
		return feed, storage.Failure(ctx, "read changes", err)
	}
	entries, err := storage.StreamEntries(found)
	if err != nil {
		return feed, storage.Failure(ctx, "read changes", err)
	}
	feed.Latest = replyInt(latest.Val()[0])
	for _, entry := range entries {
		feed.Changes = append(feed.Changes, changeOf(entry))
	}
	first := feed.Latest + 1
	if len(feed.Changes) > 0 {
		first = feed.Changes[0].ID
		feed.Latest = max(feed.Latest, feed.Changes[len(feed.Changes)-1].ID)
	}
	if first <= since+1 {
		return feed, nil
	}
	// Either the feed has been trimmed, or a crash prevented the change of this id. In the
	// second case the feed still holds an earlier entry.
	before, err := storage.StreamEntries(r.s.Client().Do(ctx, "XREVRANGE", key, since, "-", "COUNT", 1))
	feed.Lost = len(before) == 0
	return feed, storage.Failure(ctx, "read changes", err)
}

func changeOf(entry storage.StreamEntry) api.DocumentChange {
	number, _, _ := strings.Cut(entry.ID, "-")
	return api.DocumentChange{
		ID: replyInt(number), Op: entry.Fields["op"], Key: entry.Fields["key"], Revision: replyInt(entry.Fields["rev"]),
		At: api.NewMoment(replyInt(entry.Fields["at"])),
	}
}
