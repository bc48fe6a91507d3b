package schedules

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/storage"
)

// change returns the event of p, as schedule_put.lua takes it.
func (p *Put) change(ctx context.Context) string {
	kind := event.ScheduleUpdated
	switch {
	case p.Before == nil:
		kind = event.ScheduleCreated
	case p.Before.Meta != nil && p.Before.Meta.Enabled && !p.After.Enabled:
		kind = event.SchedulePaused
	case p.Before.Meta != nil && !p.Before.Meta.Enabled && p.After.Enabled:
		kind = event.ScheduleResumed
	}
	return changeOf(ctx, kind, p.After.UpdatedAtMS, p.Path, p.After)
}

// changeOf returns the event of a change of a schedule, whose record may be unknown, by the
// actor of ctx, as scripts take it.
func changeOf(ctx context.Context, kind string, atMS int64, path storage.SchedulePath, s *Stored) string {
	c := event.Change{Type: kind, Of: event.KindSchedules + "/" + path.Namespace, ID: path.Name, AtMS: atMS, Actor: event.ActorOf(ctx), Data: event.Data{Namespace: path.Namespace}}
	switch {
	case s == nil:
	case s.Ref != nil:
		c.Data.Function, c.Data.Queue = s.Ref.Function, api.FunctionQueuePrefix+s.Ref.Function
	case s.Schedule.Queue != nil:
		c.Data.Queue = s.Schedule.Queue.Name
	}
	return c.Text()
}
