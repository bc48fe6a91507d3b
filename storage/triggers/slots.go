package triggers

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
)

// scriptSlot names the script of slots in package lua.
const scriptSlot = "trigger_slot.lua"

// slotTime is how long a slot is held unless it is renewed.
const slotTime = 10 * time.Second

// Slots are the slots that a replica holds. A trigger with a concurrency limit has as many slots as
// its limit, over all replicas, and each of its activations runs in one. A replica that dies loses
// its slots after slotTime. Slots is safe for concurrent use.
type Slots struct {
	repository *Repository
	clock      func() int64 // Unix milliseconds

	mu   sync.Mutex
	held map[*Slot]struct{}
}

// Slot is one slot of a trigger.
type Slot struct {
	key    string
	name   string // unique
	count  int    // of the trigger
	endsMS int64  // under Slots.mu
}

// NewSlots returns an empty Slots for a replica. clock returns Unix milliseconds.
func NewSlots(r *Repository, clock func() int64) *Slots {
	return &Slots{repository: r, clock: clock, held: map[*Slot]struct{}{}}
}

// Enter takes a slot of a trigger, nil if all are taken. CodeStoreUnavailable.
func (s *Slots) Enter(ctx context.Context, t *Found) (*Slot, error) {
	slot := &Slot{key: s.repository.s.Keys().TriggerSlots(t.Tenant, t.Namespace, t.Queue), name: uuid.NewString(), count: t.Concurrency}
	now := s.clock()
	reply, err := s.repository.slot(ctx, slot, slot.count, now)
	if err != nil || reply == 0 {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot.endsMS = now + slotTime.Milliseconds()
	s.held[slot] = struct{}{}
	return slot, nil
}

// Leave frees a slot. If the store does not answer (CodeStoreUnavailable), the slot ends by
// itself.
func (s *Slots) Leave(ctx context.Context, slot *Slot) error {
	s.mu.Lock()
	delete(s.held, slot)
	s.mu.Unlock()
	_, err := s.repository.slot(ctx, slot, 0, 0)
	return err
}

// Renew renews the slots that end within half of their time. A slot that was lost, because the
// store did not answer, is taken again if there is room; the activation that runs in it is not stopped.
// CodeStoreUnavailable: some were not renewed, and the next call tries again.
func (s *Slots) Renew(ctx context.Context) error {
	now := s.clock()
	var due []*Slot
	s.mu.Lock()
	for slot := range s.held {
		if slot.endsMS < now+slotTime.Milliseconds()/2 {
			due = append(due, slot)
		}
	}
	s.mu.Unlock()
	var failed error
	for _, slot := range due {
		reply, err := s.repository.slot(ctx, slot, slot.count, now)
		if err != nil || reply == 0 { // not held: the next call tries again
			failed = errors.Join(failed, err)
			continue
		}
		s.mu.Lock()
		slot.endsMS = now + slotTime.Milliseconds()
		_, still := s.held[slot]
		s.mu.Unlock()
		if still {
			continue
		}
		if _, err := s.repository.slot(ctx, slot, 0, 0); err != nil { // it was left meanwhile
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// slot takes or renews one of count slots, or leaves it if count is 0. The reply is 0 if all are
// taken.
func (r *Repository) slot(ctx context.Context, slot *Slot, count int, nowMS int64) (int64, error) {
	reply, err := r.s.Script(ctx, scriptSlot, []string{slot.key},
		slot.name, count, nowMS, nowMS+slotTime.Milliseconds(), 2*slotTime.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, _ := reply.(int64)
	return n, nil
}
