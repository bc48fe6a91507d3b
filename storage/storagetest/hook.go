package storagetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// LikeKVRocks is a hook (see storage.Config.Hook) that makes redis-server and the
// embedded store answer plain commands as KVRocks does, and fails the commands that
// KVRocks lacks or answers otherwise.
func LikeKVRocks(client redis.UniversalClient) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		client.AddHook(kvrocks{})
		return
	}
	client.AddHook(kvrocks{cluster: true})
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(kvrocks{node: true}) })
}

// kvrocks is the hook. It refuses commands before they are sent (refusal) and changes replies
// after they have come (answer). The commands of scripts do not pass through it; kvrocks.lua
// does the same for them.
type kvrocks struct {
	cluster bool // the client chooses the node
	node    bool // it is one node of a cluster
}

// DialHook implements redis.Hook.
func (kvrocks) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (k kvrocks) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := k.refusal(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		if cmd.Name() == "persist" {
			found := redis.NewIntCmd(ctx, "exists", cmd.Args()[1])
			if err := next(ctx, found); err != nil || found.Val() == 0 {
				err = cmp.Or(err, errPersist)
				cmd.SetErr(err)
				return err
			}
		}
		if err := next(ctx, cmd); err != nil {
			return err
		}
		answer(cmd)
		return cmd.Err()
	}
}

// ProcessPipelineHook implements redis.Hook.
func (k kvrocks) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := k.refusal(cmd); err != nil {
				for _, unsent := range cmds {
					unsent.SetErr(err)
				}
				return err
			}
		}
		if err := next(ctx, cmds); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		for _, cmd := range cmds {
			answer(cmd)
			if cmd.Err() != nil {
				return cmd.Err()
			}
		}
		return nil
	}
}

// unknown are commands that KVRocks lacks, or whose replies differ there. A test that uses one
// fails on every server, not only on KVRocks.
var unknown = wordSet(`hexpire hpexpire hexpireat hpexpireat hexpiretime hpexpiretime httl hpttl hpersist hgetex hsetex hgetdel
	wait waitaof latency touch swapdb object save function spublish ssubscribe sunsubscribe select zmscore xreadgroup xautoclaim`)

// wordSet returns the set of the words of a text.
func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// refusal returns an error for a command that KVRocks does not run as redis-server
// does.
func (k kvrocks) refusal(cmd redis.Cmder) error {
	name := strings.ToLower(cmd.Name())
	var args []string
	for _, arg := range cmd.Args()[1:] {
		if raw, ok := arg.([]byte); ok {
			arg = string(raw)
		}
		args = append(args, fmt.Sprint(arg))
	}
	sub := ""
	if len(args) > 0 {
		sub = strings.ToLower(args[0])
	}
	refused := unknown[name]
	switch name {
	case "config":
		refused = sub != "get" && sub != "set" || sub == "get" && len(args) > 2
	case "memory":
		refused = sub != "usage"
	case "client":
		refused = sub == "setinfo" || sub == "tracking" || sub == "no-evict"
	case "script":
		refused = sub == "flush" && len(args) > 1
	case "flushdb", "flushall":
		refused = len(args) > 0
	case "expire", "pexpire", "expireat", "pexpireat":
		refused = len(args) > 2
	case "xadd", "xtrim":
		for _, arg := range args[min(1, len(args)):] {
			refused = refused || arg == "~" || arg == ""
		}
	case "keys":
		refused = !isPrefix(sub)
	case "scan", "hscan", "sscan", "zscan":
		for i, arg := range args {
			if strings.EqualFold(arg, "match") && i+1 < len(args) && i > 0 {
				// A node of a cluster passes over keys that have a prefix.
				refused = refused || !isPrefix(args[i+1]) || k.node && name == "scan" && args[i+1] != "*"
			}
		}
	case "publish":
		refused = k.cluster // the nodes do not pass notices on
	}
	if refused {
		return fmt.Errorf("KVRocks does not run %.200v as redis-server does", cmd.Args())
	}
	return nil
}

// isPrefix reports whether a pattern is a prefix and a star.
func isPrefix(pattern string) bool {
	return strings.IndexAny(pattern, `*?[]\`) == len(pattern)-1 && strings.HasSuffix(pattern, "*")
}

// errPersist is the reply of PERSIST where a hash has lost its last field and kept
// its time-to-live, or the key expires at that moment.
var errPersist = errors.New("ERR NotFound: the key was expired")

// errNilValue is the client's error for a nil in a stream entry.
var errNilValue = errors.New(`redis: can't parse array/set/push reply: "$-1"`)

// answer changes a reply into that of KVRocks: nil for GETRANGE of a missing key, and nil for
// an empty value in a stream entry.
func answer(cmd redis.Cmder) {
	switch cmd := cmd.(type) {
	case *redis.StringCmd:
		if cmd.Name() == "getrange" && cmd.Val() == "" {
			cmd.SetErr(redis.Nil)
		}
	case *redis.XMessageSliceCmd:
		for _, entry := range cmd.Val() {
			for _, value := range entry.Values {
				if value == "" {
					cmd.SetErr(errNilValue)
				}
			}
		}
	case *redis.Cmd:
		if name := strings.ToLower(cmd.Name()); name == "xrange" || name == "xrevrange" {
			entries, _ := cmd.Val().([]any)
			for _, entry := range entries {
				emptyToNil(entry)
			}
		}
	}
}

// emptyToNil replaces empty strings in a nested reply by nil.
func emptyToNil(reply any) {
	list, _ := reply.([]any)
	for i, v := range list {
		if v == "" {
			list[i] = nil
		}
		emptyToNil(v)
	}
}
