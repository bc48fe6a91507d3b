package storage

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A due set says when something is to be done where, for all tenants at once: its
// members are looked after by whoever finds them due. Whoever makes something
// due does so after it has written it, and only ever brings the moment nearer;
// whoever has looked after a member gives it its next moment only if nobody
// touched it since, and then looks once more. So nothing due is overlooked,
// unless a process dies between its two writes: the sweeper finds that.

// How the members of due sets begin.
const (
	DueQueuePrefix    = "queue/"    // and tenant/namespace/queue
	DueSchedulePrefix = "schedule/" // and a tenant
)

// DueShard is the shard of a member of the due and ready sets.
func DueShard(member string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(member)) // a hash takes every write
	return int(h.Sum32() % DueShards)
}

// DueMember is one entry of a due or ready set.
type DueMember struct {
	Key, Member string
	Score       int64 // the moment, in milliseconds
}

// MarkDue brings a member's moment to at, if it is not nearer yet.
func MarkDue(ctx context.Context, pipe redis.Pipeliner, member string, at int64) {
	pipe.ZAddLT(ctx, KeyDue(DueShard(member)), redis.Z{Score: float64(at), Member: member})
}

// SettleDue gives each member, which must still have its Score, its next moment, 0 for none. It
// says of which ones that was so: nobody had touched them since they were read.
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
