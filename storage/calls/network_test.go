package calls_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
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

// replyLoser closes the connection in place of the next reply to increments.
type replyLoser struct {
	dialing
	lose atomic.Bool
}

// DialHook implements redis.Hook.
func (l *replyLoser) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &losingConn{Conn: conn, of: l}, nil
	}
}

type losingConn struct {
	net.Conn
	of    *replyLoser
	loses bool // the next reply
}

func (c *losingConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("hincrby")) && c.of.lose.CompareAndSwap(true, false) {
		c.loses = true
	}
	return c.Conn.Write(b)
}

func (c *losingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.loses && err == nil { // the pipeline has run
		return 0, io.EOF
	}
	return n, err
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
