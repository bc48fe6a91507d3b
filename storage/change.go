package storage

import (
	"context"
	"strconv"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/event"
)

// functionChange returns the event of a change of a function at atMS by the actor of ctx, as
// scripts take it. The actor's change is of the function itself unless part names one of its
// collections, with id its member.
func functionChange(ctx context.Context, kind string, atMS int64, namespace, function, part, id string, data event.Data) string {
	data.Namespace, data.Function = namespace, function
	c := event.Change{Type: kind, Of: event.KindFunctions + "/" + namespace, ID: function, AtMS: atMS, Actor: event.ActorOf(ctx), Data: data}
	if part != "" {
		c.Of, c.ID = c.Of+"/"+function+"/"+part, id
	}
	return c.Text()
}

// change returns the event of the version that p makes, as publish.lua takes it.
func (p *Publish) change(ctx context.Context, version int64) string {
	return functionChange(ctx, event.VersionPublished, p.NowMS, p.Namespace, p.Function, "versions", strconv.FormatInt(version, 10), event.Data{Version: version})
}

// aliasChange returns the event of an alias, as scripts take it. version is the one that it is set
// to, 0 if it is deleted: the script adds the version before.
func aliasChange(ctx context.Context, kind string, atMS int64, namespace, function, alias string, version int64) string {
	return functionChange(ctx, kind, atMS, namespace, function, "aliases", alias, event.Data{Alias: alias, Version: version})
}

// change returns the event of p, as schedule_put.lua takes it.
func (p *SchedulePut) change(ctx context.Context) string {
	kind := event.ScheduleUpdated
	switch {
	case p.Before == nil:
		kind = event.ScheduleCreated
	case p.Before.Meta != nil && p.Before.Meta.Enabled && !p.After.Enabled:
		kind = event.SchedulePaused
	case p.Before.Meta != nil && !p.Before.Meta.Enabled && p.After.Enabled:
		kind = event.ScheduleResumed
	}
	return scheduleChange(ctx, kind, p.After.UpdatedAtMS, p.Path, p.After)
}

// scheduleChange returns the event of a change of a schedule, whose record may be unknown, by the
// actor of ctx, as scripts take it.
func scheduleChange(ctx context.Context, kind string, atMS int64, path SchedulePath, s *StoredSchedule) string {
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
