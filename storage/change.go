package storage

import (
	"context"
	"strconv"

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
