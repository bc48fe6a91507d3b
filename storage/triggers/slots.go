package triggers

import (
	"context"
	"time"
)

// scriptSlot is the name of its file in package lua.
const scriptSlot = "trigger_slot.lua"

// SlotTime is how long a slot is held unless it is renewed.
const SlotTime = 10 * time.Second

// Slot is one of the places in which the activations of a trigger run, over all replicas. A
// replica that dies loses its slots after SlotTime.
type Slot struct {
	Tenant, Namespace, Queue string
	Name                     string // unique
}

// Hold takes or renews a slot of count. It reports whether the caller has it.
// CodeStoreUnavailable.
func (r *Repository) Hold(ctx context.Context, slot Slot, count int, nowMS int64) (bool, error) {
	reply, err := r.slot(ctx, slot, count, nowMS)
	return reply == 1, err
}

// Leave frees a slot. CodeStoreUnavailable.
func (r *Repository) Leave(ctx context.Context, slot Slot) error {
	_, err := r.slot(ctx, slot, 0, 0)
	return err
}

func (r *Repository) slot(ctx context.Context, slot Slot, count int, nowMS int64) (int64, error) {
	reply, err := r.s.Script(ctx, scriptSlot, []string{r.s.Keys().TriggerSlots(slot.Tenant, slot.Namespace, slot.Queue)},
		slot.Name, count, nowMS, nowMS+SlotTime.Milliseconds(), 2*SlotTime.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, _ := reply.(int64)
	return n, nil
}
