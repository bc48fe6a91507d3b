package jobstore

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/queue/internal/ledger"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/spending"
)

// fieldIteration begins the fields of a job's hash that have its iterations, such as iteration:3. A
// field is written before the ledger counts the iteration as ended.
const fieldIteration = "iteration:"

// Change is the change of a job's ledger that a Move makes with its run, in one write.
type Change struct {
	Before int64          // the version that was read
	Spent  *ledger.Ledger // Ledger without the end of an iteration; nil if nothing is spent
	Ledger *ledger.Ledger
	Ended  *agent.Iteration // nil for none
	Rows   []spending.Row   // the usage that was added
	// Budgets are those that cover the job, nil for none.
	Budgets *BudgetChange
}

// BudgetChange holds the changes of a call to the budgets that cover its job. If the stored revision of the
// tenant's budgets is another one, or Limits has assumed another state of one, the call changes nothing
// and its outcome is Stale.
type BudgetChange struct {
	Revision int64
	Limits   []BudgetLimit
	Holder   string // the id of the budget that is going to hold the job, "" for none
	Score    int64  // of the job among those that Holder holds
	Crossed  []int  // set by the call: the positions of the limits that it has reached
}

// BudgetLimit is a limit of a budget. Without a Field it is that of each job, which the call reaches.
type BudgetLimit struct {
	Field         string    // of the sum of the day
	Added, Limit  agent.USD // Limit is 0 for none
	Assumed       string    // "1" if the caller takes the limit for reached, "0" if not, "" for either
	Event, Action string    // the event for when it is reached, "" for none; what the budget does then
}

// FindWithLedger returns one job without details, but with its ledger. It is one command. Errors:
// CodeJobNotFound, CodeStoreUnavailable.
func (s *Store) FindWithLedger(ctx context.Context, tenant, id string) (*Record, error) {
	keys := s.store.JobKeys(tenant)
	reply, err := s.rdb.MGet(ctx, keys.Run(id), keys.Spec(id), keys.Ledger(id)).Result()
	if err != nil {
		return nil, Failure(ctx, "read jobs", err)
	}
	words := Words(reply)
	r, err := newRecord(id, words[0], words[1])
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, NotFound(id)
	}
	r.Ledger, err = ledger.Parse(words[2])
	return r, err
}

// History returns the records of a job's attempts that did not complete it, oldest first, and its
// ledger. Errors: CodeStoreUnavailable.
func (s *Store) History(ctx context.Context, tenant, id string) (attempts []string, spent *ledger.Ledger, err error) {
	keys, pipe := s.store.JobKeys(tenant), s.rdb.Pipeline()
	list, text := pipe.LRange(ctx, keys.Errors(id), 0, -1), pipe.Get(ctx, keys.Ledger(id))
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, nil, Failure(ctx, "read a job's errors", err)
	}
	spent, err = ledger.Parse(text.Val())
	return list.Val(), spent, err
}

// ledgerArguments appends the keys and arguments of the ledger of the one move of a call of
// job_move.lua.
func (s *Store) ledgerArguments(q Queue, m *Move, now int64, keys []string, args []any) ([]string, []any, error) {
	c, tenant := m.Ledger, s.store.JobKeys(q.Tenant)
	text, err := c.Ledger.Next()
	if err != nil {
		return nil, nil, err
	}
	mark, field, record, drop := "", "", "", ""
	if c.Spent != nil {
		mark, err = c.Spent.Next()
		if err != nil {
			return nil, nil, err
		}
	}
	if c.Ended != nil {
		raw, err := api.EncodeJSON(c.Ended)
		if err != nil {
			return nil, nil, api.Wrap(api.CodeInternal, err, "encode an iteration")
		}
		field, record = iterationField(c.Ended.Iteration), string(raw)
		if old := c.Ended.Iteration - agent.KeptIterations; old > 0 {
			drop = iterationField(old)
		}
	}
	day := spending.Day(now)
	keys = append(keys, tenant.Ledger(m.Record.ID), tenant.Meta(m.Record.ID), tenant.Spending(day), tenant.Spending(day-1))
	args = append(args, c.Before, text, mark, field, record, drop, spending.KeepMS, agent.MaxRows)
	keys, args = c.Budgets.arguments(tenant, keys, args)
	for _, row := range c.Rows {
		args = append(args, row.Field, row.Instead)
		for _, n := range row.Sums.Numbers() {
			args = append(args, n)
		}
	}
	return keys, args, nil
}

// arguments appends the keys and arguments of budgets, which may be none.
func (c *BudgetChange) arguments(tenant storage.JobKeys, keys []string, args []any) ([]string, []any) {
	if c == nil || len(c.Limits) == 0 {
		return keys, append(args, 0)
	}
	keys, score := append(keys, tenant.Budgets()), ""
	if c.Holder != "" {
		keys, score = append(keys, tenant.HeldBy(c.Holder)), ScoreText(c.Score)
	}
	args = append(args, len(c.Limits), c.Revision, score)
	for i := range c.Limits {
		l := &c.Limits[i]
		args = append(args, l.Field, int64(l.Added), int64(l.Limit), l.Assumed, l.Event)
	}
	return keys, args
}

// cross notes the limits that a call has reached, as its reply names them.
func (c *Change) cross(reply string) {
	if c == nil || c.Budgets == nil {
		return
	}
	for word := range strings.FieldsSeq(reply) {
		n, err := strconv.Atoi(word)
		if err == nil && n > 0 && n <= len(c.Budgets.Limits) {
			c.Budgets.Crossed = append(c.Budgets.Crossed, n-1)
		}
	}
}

func iterationField(n int64) string { return fieldIteration + strconv.FormatInt(n, 10) }

// Iterations returns the stored records of a job's iterations from first to last, those that exist.
// They have at most a few hundred KiB each. Errors: CodeStoreUnavailable.
func (s *Store) Iterations(ctx context.Context, tenant, id string, first, last int64) ([]string, error) {
	if last < first {
		return nil, nil
	}
	fields := make([]string, 0, last-first+1)
	for n := first; n <= last; n++ {
		fields = append(fields, iterationField(n))
	}
	reply, err := s.rdb.HMGet(ctx, s.store.JobKeys(tenant).Meta(id), fields...).Result()
	if err != nil {
		return nil, Failure(ctx, "read the iterations of a job", err)
	}
	return Words(reply), nil
}

// Completed returns the move that completes r, with the result of its worker, "" for none.
func (r *Record) Completed(result string, now int64) *Move {
	m := Move{Record: r, To: r.Run.Settle(SettledAck).To(api.JobCompleted, now), Field: fieldResult, Value: result}.End()
	if result == "" {
		m.Field = ""
	}
	m.follow = r.Run.follows == followsEnd
	return &m
}

// Extended returns the move that extends the lease of r until end, and stores the progress and the
// checkpoint of a heartbeat, "" for none.
func (r *Record) Extended(end int64, progress, checkpoint string) *Move {
	m := &Move{Record: r, To: r.Run.To(api.JobActive, end), Checkpoint: checkpoint}
	if progress != "" {
		m.Field, m.Value = fieldProgress, progress
	}
	return m
}

// Same returns the move that changes nothing but the ledger of r.
func (r *Record) Same() *Move { return &Move{Record: r, To: r.Run} }
