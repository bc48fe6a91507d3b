package storagetest

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Before is a hook of a client. It is called before each command and each pipeline is sent, with
// its commands: a call is a round trip. Calls may be concurrent.
type Before func(cmds []redis.Cmder)

// DialHook implements redis.Hook.
func (b Before) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (b Before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b([]redis.Cmder{cmd})
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (b Before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		b(cmds)
		return next(ctx, cmds)
	}
}

// CountCommands counts the commands that a client sends from now on: those with one of names, or
// all if there are none. It returns a function that returns their number.
func CountCommands(client redis.UniversalClient, names ...string) func() int64 {
	n := &atomic.Int64{}
	client.AddHook(Before(func(cmds []redis.Cmder) {
		for _, cmd := range cmds {
			if len(names) == 0 || slices.Contains(names, cmd.Name()) {
				n.Add(1)
			}
		}
	}))
	return n.Load
}
