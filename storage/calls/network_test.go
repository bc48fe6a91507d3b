package calls_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// dialing has the hooks that do nothing.
type dialing struct{}

// DialHook implements redis.Hook.
func (dialing) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (dialing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (dialing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// refuser fails the next pipeline.
type refuser struct {
	dialing
	refuse atomic.Bool
}

// ProcessPipelineHook implements redis.Hook.
func (r *refuser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if r.refuse.CompareAndSwap(true, false) {
			return errors.New("refused")
		}
		return next(ctx, cmds)
	}
}

// hanger lets pipelines wait until their contexts end.
type hanger struct {
	dialing
	hang    atomic.Bool
	reached chan struct{} // closed when the first one waits
}

// ProcessPipelineHook implements redis.Hook.
func (h *hanger) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.hang.CompareAndSwap(true, false) {
			close(h.reached)
			<-ctx.Done()
			return ctx.Err()
		}
		return next(ctx, cmds)
	}
}
