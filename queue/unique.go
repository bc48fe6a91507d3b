package queue

import (
	"context"

	"github.com/codesous/sous/queue/internal/jobstore"
)

// A unique key admits one job that has not ended. It is a key of the store whose value is the
// id of its holder. For jobs with the unique key k in queue mail of namespace shop:
//
//	call               cs:uniq:t_acme01:shop:mail:k  result
//	enqueue j1         j1, expires in UniqueTTLMS    j1 is pending
//	enqueue j2         j1                            j1, a duplicate; j2 is not stored
//	ack j1             deleted by the same script    j1 is completed
//	enqueue j3         j3                            j3 is pending
//	j3 dies            j3                            the script was interrupted before
//	                                                 it deleted the key
//	enqueue j4         j3                            the script replies with the holder j3
//	  reads j3: dead
//	  Ended = j3       j4                            j4 is pending
//
// The script deletes the key of an ended job only while it names that job. A key that expires
// frees itself although its holder lives, as UniqueTTLMS asks for.

// lookAtHolders reads the jobs that hold unique keys, and sets Ended or Living of each entry
// whose holder it read. freed reports whether one has ended, or was never stored because of a
// crash, so that its key is free. seen reports whether one lives that was not known to. A
// holder that lives is indexed if its enqueue was interrupted: a producer that is answered with
// a duplicate relies on that job to run.
func (b *Broker) lookAtHolders(ctx context.Context, tenant string, items []*jobstore.Entry) (freed, seen bool, err error) {
	var holders []string
	var held []*jobstore.Entry
	for _, item := range items {
		if item.Holder != "" && item.Holder != item.Living {
			holders, held = append(holders, item.Holder), append(held, item)
		}
	}
	found, err := b.jobs.Load(ctx, tenant, holders)
	if err != nil {
		return false, false, err
	}
	for i, r := range found {
		if r == nil || r.Run.State.Terminal() {
			held[i].Ended, freed = holders[i], true
			continue
		}
		if _, err := b.jobs.Reindex(ctx, tenant, r); err != nil {
			return false, false, err
		}
		held[i].Living, seen = holders[i], true
	}
	return freed, seen, nil
}
