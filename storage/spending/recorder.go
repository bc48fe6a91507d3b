package spending

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/keyedmutex"
)

const scriptAdd = "usage_add.lua"

// rowMark is the kind of the field that marks the last call of a replica: a|id.
const rowMark = "a"

// The pauses between the tries of a write that the store did not answer.
const (
	retryMin = 20 * time.Millisecond
	retryMax = time.Second
)

// Recorder adds what functions spend on models, that are no attempts of jobs, to the sums of the day.
// Each entry is counted once: a replica makes one call for a tenant at a time, and repeats it with the
// same mark until the store answers. It is safe for concurrent use.
type Recorder struct {
	store *storage.Store
	id    string // of this process
	calls atomic.Int64
	locks *keyedmutex.Mutex
}

// NewRecorder returns a recorder of the spending in store.
func NewRecorder(store *storage.Store) *Recorder {
	return &Recorder{store: store, id: uuid.NewString(), locks: keyedmutex.New()}
}

// Add adds entries of a spender, with their costs. While the store does not answer, it tries again until
// ctx ends; the entries may then be counted or not. Errors: CodeStoreUnavailable, ctx's.
func (r *Recorder) Add(ctx context.Context, tenant string, s Spender, entries []agent.Usage) error {
	unlock, err := r.locks.Lock(ctx, tenant)
	if err != nil {
		return err
	}
	defer unlock()
	args := []any{rowMark + "|" + r.id, strconv.FormatInt(r.calls.Add(1), 10), KeepMS, agent.MaxRows}
	for _, row := range Rows(s, entries) {
		args = append(args, row.Field, row.Instead)
		for _, n := range row.Sums.Numbers() {
			args = append(args, n)
		}
	}
	key := r.store.JobKeys(tenant).Spending(Day(r.store.NowMS()))
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		_, err := r.store.Script(ctx, scriptAdd, []string{key}, args...)
		if api.ErrorCode(err) != api.CodeStoreUnavailable {
			return err
		}
		if sleep.For(ctx, pause) != nil {
			return err
		}
	}
}
