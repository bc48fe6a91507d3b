package storagetest

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ReplyLoser is a hook of a client. When Lose is set, it closes the connection in place of the
// reply to the next request that contains Word, which the server has executed then, and clears
// Lose.
type ReplyLoser struct {
	Word string // as the client sends it, such as evalsha
	Lose atomic.Bool
}

// DialHook implements redis.Hook.
func (l *ReplyLoser) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &losingConn{Conn: conn, of: l}, nil
	}
}

// ProcessHook implements redis.Hook.
func (*ReplyLoser) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (*ReplyLoser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

type losingConn struct {
	net.Conn
	of    *ReplyLoser
	loses bool // the next reply
}

// Write notes whether the request is the one whose reply is lost.
func (c *losingConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.of.Word)) && c.of.Lose.CompareAndSwap(true, false) {
		c.loses = true
	}
	return c.Conn.Write(b)
}

// Read loses the reply after it has arrived: the server has executed the request.
func (c *losingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.loses && err == nil {
		return 0, io.EOF
	}
	return n, err
}
