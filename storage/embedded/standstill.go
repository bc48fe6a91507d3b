package embedded

import (
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// standstill schedules commands: reads run concurrently, a write runs alone, and snapshots
// and expiry run while no command does.
type standstill struct {
	mu    sync.RWMutex
	ended bool
	peers sync.Map // *server.Peer of a connection → bool: a command of it is being dispatched
}

// end refuses every further command. It waits for running ones: a script would not survive
// the end of the server that it calls.
func (s *standstill) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// command returns a hook that runs every command of a connection under the lock, and calls
// wrote for each that may have changed data, before its answer is sent. miniredis calls
// the hook before each command, those within scripts included, and offers no hook after
// it. So the hook runs the command itself, by dispatching it once more. Of EVALSHA the hook
// sees, in this order:
//
//	EVALSHA on the connection     takes the lock and dispatches it
//	EVALSHA on the connection     is being dispatched: returns false, and miniredis runs it
//	SET, … on a peer of the script's own    returns false, and miniredis runs it
//
// A hook that returns true has answered the command. The peer buffers its reply, whose end
// leaves after the hook has returned, when the journal has the command.
func (s *standstill) command(srv *server.Server, wrote func(args []string)) server.Hook {
	return func(p *server.Peer, command string, args ...string) bool {
		within, known := s.peers.Load(p)
		switch {
		case !known && p.Ctx != nil:
			return false // a script's own peer: its EVAL holds the lock
		case !known:
			p.OnDisconnect(func() { s.peers.Delete(p) })
		case within.(bool):
			return false // dispatched below
		}
		writes := !srv.IsReadOnlyCommand(command) && !strings.Contains(withoutEffect, " "+command+" ")
		if writes {
			s.mu.Lock()
			defer s.mu.Unlock()
		} else {
			s.mu.RLock()
			defer s.mu.RUnlock()
		}
		if s.ended {
			p.WriteError("LOADING the embedded store is closed")
			return true
		}
		args = append([]string{command}, args...)
		s.peers.Store(p, true)
		srv.Dispatch(p, args)
		s.peers.Store(p, false)
		if writes {
			wrote(args)
		}
		return true
	}
}

// withoutEffect lists commands that concern a connection only, but that miniredis does not
// mark as reads.
const withoutEffect = " PING HELLO AUTH SELECT QUIT ECHO CLIENT COMMAND INFO CLUSTER PUBLISH SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE PUBSUB "
