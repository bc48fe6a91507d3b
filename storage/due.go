package storage

import (
	"context"
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Due sets
//
// A due set orders the queues of all tenants, the tenants that have schedules, and the budgets,
// by the moment at which they need attention. It is a sorted set in DueShards keys. The score
// is the moment in milliseconds since 1970, and the member names the place to look at:
//
//	ZADD cs:due:3 LT 1767225600000 queue/t_acme01/default/mail
//	ZADD cs:due:1 LT 1767225660000 schedule/t_acme01
//
// The set does not hold the work itself: the jobs of the queue are in sets of the queue,
// and the schedules of the tenant in cs:schedule:t_acme01:due. The due set only spares
// replicas the reading of every queue.
//
// A writer first stores its record and then marks the member due; it may move the moment
// earlier, never later. Any replica may serve a member that is due. It sets the next moment
// only if the member's moment is unchanged since the replica read it, and then reads the
// queue or the schedules once more. So no due member is missed, unless a process dies
// between its two writes: the sweeper finds those. Package duework implements the replica's
// side, with an example of a lost race.
//
// The ready sets (KeyReady) have the same shards. They hold the fn. queues in which a fetch
// may find work; package queue maintains them.

// The prefixes of the members of due sets. A reader ignores members with other prefixes, so
// that a newer release can add a kind.
const (
	DueQueuePrefix    = "queue/"    // followed by tenant/namespace/queue
	DueSchedulePrefix = "schedule/" // followed by a tenant
	DueBudgetPrefix   = "budget/"   // followed by tenant/id/name of a budget
)

// DueShard returns the shard of a member of the due and ready sets, from 0 to DueShards-1:
// the FNV-1a hash of the member. It is the same in every process and release, since one
// member in two shards would be served twice.
func DueShard(member string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(member)) // a hash never fails to write
	return int(h.Sum32() % DueShards)
}

// DueMember is an entry of a due or ready set, as it was read.
type DueMember struct {
	Key, Member string // the shard's key, such as cs:due:3, and the member in it
	Score       int64  // the moment in milliseconds since 1970, as it was read
}

// MarkDue queues a command on pipe that sets the moment of a member of the due set to at, in
// milliseconds since 1970, unless its present one is earlier. The caller has stored the work
// before: marked first, a replica could look, find nothing, and remove the member. The
// error of the command is in pipe's replies.
func MarkDue(ctx context.Context, pipe redis.Pipeliner, member string, at int64) {
	pipe.ZAddLT(ctx, KeyDue(DueShard(member)), redis.Z{Score: float64(at), Member: member})
}

// SettleDue sets the next moment of each member whose Score is unchanged, and removes it
// where next is 0. next has one moment for each of members, in milliseconds since 1970. The
// result reports, for each member, whether it was unchanged: no other process has marked or
// settled it since it was read. With an error some of the members may have been settled; the
// result is false for those whose answer is missing. Claims are settlements, too: see
// duework.Claim.
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
