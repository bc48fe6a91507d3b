package invoker

import (
	"context"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/hostcall"
	"github.com/codesous/sous/invoker/resolve"
	"github.com/codesous/sous/invoker/sandbox/wire"
	"github.com/codesous/sous/storage"
)

// WatchVersions has before called ahead of each read of a version from the store, which every
// resolution then makes twice: none is kept.
func (i *Invoker) WatchVersions(before func()) {
	i.resolver.Through(func(s resolve.Source) resolve.Source { return &watched{s, i.resolver, before} })
}

type watched struct {
	resolve.Source
	r      *resolve.Resolver
	before func()
}

func (w *watched) Resolve(ctx context.Context, tenant, namespace, function string, ref api.Ref) (storage.Resolved, error) {
	w.before()
	defer w.r.Invalidate("", "", "") // of no function: the read counts as overtaken
	return w.Source.Resolve(ctx, tenant, namespace, function, ref)
}

// Overhear passes heard, at each call of name, a function that calls cs.invoke on behalf
// of the same activation. It can be used after the activation has ended, as a late call
// of the sandbox would.
func (i *Invoker) Overhear(name string, heard func(invoke func(ctx context.Context, function string) error)) {
	i.host = &overheard{i.host, name, heard}
}

type overheard struct {
	hostCalls
	name  string
	heard func(invoke func(ctx context.Context, function string) error)
}

func (o *overheard) Call(ctx context.Context, s *hostcall.Scope, name string, head, blob []byte) (replyHead, replyBlob []byte, err error) {
	if name == o.name {
		o.heard(func(ctx context.Context, function string) error {
			_, _, err := o.hostCalls.Call(ctx, s, wire.InvokeFunction.Name, mustJSON(wire.InvokeTarget{Function: function}), nil)
			return err
		})
	}
	return o.hostCalls.Call(ctx, s, name, head, blob)
}
