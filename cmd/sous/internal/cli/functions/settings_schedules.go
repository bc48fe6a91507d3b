package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// applySchedules creates the schedules that sous.json names, and changes those that differ.
// It leaves all others alone. changed are the names of those that it wrote.
func applySchedules(ctx context.Context, t *command.Target, function, alias string, wanted []api.NewSchedule) (changed []string, err error) {
	for _, w := range wanted {
		w.Ref = &api.JobTarget{Function: function, Alias: alias}
		wrote, err := applySchedule(ctx, t, w)
		if err != nil {
			return changed, fmt.Errorf("schedule %s: %w", w.Name, err)
		}
		if wrote {
			changed = append(changed, w.Name)
		}
	}
	return changed, nil
}

// applySchedule creates or changes one schedule. It reports whether it wrote. A schedule that
// was disabled stays so unless sous.json says otherwise.
func applySchedule(ctx context.Context, t *command.Target, w api.NewSchedule) (wrote bool, err error) {
	s := t.Namespace.Schedule(w.Name)
	now, err := s.Get(ctx)
	if api.ErrorCode(err) == api.CodeScheduleNotFound {
		_, err = t.Namespace.CreateSchedule(ctx, w)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	if now.Ref == nil || now.Ref.Function != w.Ref.Function {
		return false, errors.New("a schedule of that name has another target: delete or rename it")
	}
	want := w.Schedule(now.CreatedAtMS)
	want.Revision, want.UpdatedAtMS = now.Revision, now.UpdatedAtMS
	if w.Enabled == nil {
		want.Enabled = now.Enabled
	}
	same, err := sameJSON(want, now.Schedule)
	if err != nil || same {
		return false, err
	}
	change := client.ScheduleChange{
		Cron: &want.Cron, Timezone: &want.Timezone, OverlapPolicy: &want.OverlapPolicy, Catchup: &want.Catchup,
		MaxCatchupTicks: &want.MaxCatchupTicks, Ref: want.Ref, Payload: want.Payload, Enabled: &want.Enabled, IfMatch: now.Revision,
	}
	_, err = s.Update(ctx, withoutZero(change, &want))
	return err == nil, err
}

// withoutZero moves the fields that want does not have to those that the change removes.
func withoutZero(c client.ScheduleChange, want *api.Schedule) client.ScheduleChange {
	c.EverySeconds, c.QueueLimit = &want.EverySeconds, &want.QueueLimit
	for _, f := range []struct {
		name  string
		empty bool
		clear func()
	}{
		{"every_seconds", want.EverySeconds == 0, func() { c.EverySeconds = nil }},
		{"cron", want.Cron == "", func() { c.Cron = nil }},
		{"timezone", want.Timezone == "", func() { c.Timezone = nil }},
		{"queue_limit", want.QueueLimit == 0, func() { c.QueueLimit = nil }},
		{"payload", want.Payload == nil, func() {}},
	} {
		if f.empty {
			f.clear()
			c.Without = append(c.Without, f.name)
		}
	}
	return c
}

// sameJSON reports whether two values have the same JSON.
func sameJSON(a, b any) (bool, error) {
	one, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	two, err := json.Marshal(b)
	return string(one) == string(two), err
}
