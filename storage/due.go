package storage

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A due set orders the queues and schedules of all tenants by the moment at which they
// need attention. Any replica may serve a member that is due.
//
// A writer first stores its record and then marks the member due; it may move the moment
// earlier, never later. A replica that has served a member sets its next moment only if
// the member's moment is unchanged since the replica read it, and then reads the queue or
// schedule once more. So no due member is missed, unless a process dies between its two
// writes: the sweeper finds those.

// How the members of due sets begin.
const (
	DueQueuePrefix    = "queue/"    // followed by tenant/namespace/queue
	DueSchedulePrefix = "schedule/" // followed by a tenant
)

// DueShard returns the shard of a member of the due and ready sets.
func DueShard(member string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(member)) // a hash never fails to write
	return int(h.Sum32() % DueShards)
}

// DueMember is an entry of a due or ready set, as it was read.
type DueMember struct {
	Key, Member string
	Score       int64 // the moment, in milliseconds
}

// MarkDue sets the moment of a member to at (milliseconds), unless its present one is
// earlier.
func MarkDue(ctx context.Context, pipe redis.Pipeliner, member string, at int64) {
	pipe.ZAddLT(ctx, KeyDue(DueShard(member)), redis.Z{Score: float64(at), Member: member})
}

// SettleDue sets the next moment of each member whose Score is unchanged, and removes it
// where next is 0. The result reports, for each member, whether it was unchanged: no other
// replica has marked or settled it since it was read.
func (s *Store) SettleDue(ctx context.Context, members []DueMember, next []int64) ([]bool, error) {
	calls := make([]ScriptCall, len(members))
	for i, m := range members {
		text := ""
		if next[i] > 0 {
			text = strconv.FormatInt(next[i], 10)
		}
		calls[i] = ScriptCall{Keys: []string{m.Key}, Args: []any{m.Member, m.Score, text}}
	}
	replies, errs := s.ScriptEach(ctx, ScriptDueSettle, calls)
	mine := make([]bool, len(members))
	for i, reply := range replies {
		n, _ := reply.(int64)
		mine[i] = n == 1
	}
	return mine, errors.Join(errs...)
}
