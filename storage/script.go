package storage

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/lua"
)

// Interrupted scripts and repair
//
// A script is atomic towards other callers, but not towards a crash: KVRocks does not undo
// the writes of a script that was interrupted, by a killed process or a full disk. Every
// script therefore orders its writes so that each prefix of them is harmless:
//
//  1. the data that no reader can reach yet,
//  2. the one record or counter that makes the data visible,
//  3. the clean-up of what the script replaces.
//
// The caller repeats a call whose outcome is unknown, and the script recognizes the writes
// of its earlier try. Take publish.lua, which makes version 7 of a function and points the
// alias prod, which was at 6, to it. A crash after each of its writes leaves:
//
//	1  SET  …:ver:7:bundle     a bundle that no reader looks at, because version_seq is 6
//	   SET  …:ver:7:meta       the same, and its record
//	   ZADD …:versions 7       the same, and an entry
//	2  SET  …:version_seq 7    version 7; prod is at 6, and the draft is not consumed
//	3  ZADD …:aliases prod     the same: the entry existed
//	   SET  …:alias:prod       version 7 under prod; the draft is not consumed
//	   SET  …:draft:id         all of it: the draft is a tombstone that names version 7
//
// After a crash in step 1, the next publish overwrites the keys of version 7. After one in
// step 2 or 3, version 7 exists. The caller publishes the same draft again: publish_again.lua
// finds the draft's digest, sets the alias and the tombstone, and the answer is version 7. If
// the caller does not, prod stays at 6, and the draft expires after its day.
//
// An interrupted script is completed or repaired by one of four:
//
//   - the same call again: a create whose index entry exists writes the record;
//   - the next call on the same record: a deletion of an alias that is gone removes its name;
//   - no call, because readers ignore the remains: List skips a name without a record;
//   - the sweeper, for what would otherwise stay or delay work: docs/storage.md lists its repairs.
//
// The tests interrupt every script after each of its writes (storagetest.CutAfter).

// The scripts, by the names of their files in package lua.
const (
	scriptFunctionCreate = "function_create.lua"
	scriptFunctionDelete = "function_delete.lua"
	scriptPublish        = "publish.lua"
	scriptPublishAgain   = "publish_again.lua"
	scriptAliasSet       = "alias_set.lua"
	scriptAliasDelete    = "alias_delete.lua"
)

// The scripts of package schedules.
const (
	ScriptSchedulePut    = "schedule_put.lua"
	ScriptScheduleDelete = "schedule_delete.lua"
)

// The scripts of package quotas.
const (
	ScriptQuotaTake    = "quota_take.lua"
	ScriptQuotaRecount = "quota_recount.lua"
	ScriptQuotaLease   = "quota_lease.lua"
)

// The scripts of package queue. ScriptDueSettle is called by SettleDue in this package, for
// queues and for tenants with schedules.
const (
	ScriptJobEnqueue   = "job_enqueue.lua"
	ScriptJobAdd       = "job_add.lua"
	ScriptJobClaim     = "job_claim.lua"
	ScriptJobAck       = "job_ack.lua"
	ScriptJobComplete  = "job_complete.lua"
	ScriptJobMove      = "job_move.lua"
	ScriptJobHeartbeat = "job_heartbeat.lua"
	ScriptJobDepend    = "job_depend.lua"
	ScriptJobPurge     = "job_purge.lua"
	ScriptJobDrop      = "job_drop.lua"
	ScriptJobStep      = "job_step.lua"
	ScriptJobSummary   = "job_summary.lua"
	ScriptJobReindex   = "job_reindex.lua"
	ScriptJobRelayout  = "job_relayout.lua"
	ScriptDueSettle    = "due_settle.lua"
	ScriptScheduleTick = "schedule_tick.lua"
	ScriptBatchCount   = "batch_count.lua"
	ScriptBatchDelete  = "batch_delete.lua"
	ScriptQueueConfig  = "queue_configure.lua"
)

// loadScripts reads every script of package lua, each preceded by prelude. It returns the
// scripts and their texts, by name.
func loadScripts(prelude string) (scripts map[string]*redis.Script, texts map[string]string, err error) {
	sources, err := lua.Sources()
	if err != nil {
		return nil, nil, err
	}
	texts = make(map[string]string, len(sources))
	scripts = make(map[string]*redis.Script, len(sources))
	for name, source := range sources {
		texts[name] = prelude + source
		scripts[name] = redis.NewScript(texts[name])
	}
	return scripts, texts, nil
}

// Script runs the script called name, its file in package lua, and returns its reply. It sends the
// script's digest, and its text to a node that does not hold it, such as a restarted one.
//
// Where the answer of a first try was lost, the client sends the script again: a script must
// recognize what its first try has written (see ScriptOnce for those that cannot). An error of the
// script, such as redis.error_reply('CS_ALIAS_NOT_FOUND no such alias'), is an *api.Error with its
// code. All keys must be of one tenant, and so in one slot.
func (s *Store) Script(ctx context.Context, name string, keys []string, args ...any) (any, error) {
	reply, err := s.scripts[name].Run(ctx, s.rdb, keys, args...).Result()
	if err != nil {
		return nil, scriptFailure(ctx, name, err)
	}
	return reply, nil
}

// ScriptOnce is Script for a script that does not recognize its own earlier try: the
// client does not send it again after a lost reply. A second try would find the write of
// the first, and report it as another caller's write.
func (s *Store) ScriptOnce(ctx context.Context, name string, keys []string, args ...any) (any, error) {
	reply, err := s.scripts[name].Run(ctx, onceScripter{s.rdb}, keys, args...).Result()
	if err != nil {
		return nil, scriptFailure(ctx, name, err)
	}
	return reply, nil
}

// ScriptThen runs a script and the plain commands that then adds, which may be of other
// slots: notices, or due sets, which belong to no tenant. On a single node both take one
// round trip and keep their order, and then runs even if the script failed; on a cluster
// then runs only after the script has succeeded. A crash in between leaves the script's
// writes without those of then: the sweeper adds a missing mark.
func (s *Store) ScriptThen(ctx context.Context, name string, keys []string, args []any, then func(redis.Pipeliner)) (any, error) {
	return s.ScriptBetween(ctx, name, keys, args, func(redis.Pipeliner) {}, then)
}

// ScriptBetween is ScriptThen with plain commands before the script as well. The script
// runs even if one of those fails; the call then fails.
func (s *Store) ScriptBetween(ctx context.Context, name string, keys []string, args []any, before, then func(redis.Pipeliner)) (any, error) {
	pipe := s.rdb.Pipeline()
	before(pipe)
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, Failure(ctx, name, err)
		}
	} else {
		reply := s.scripts[name].EvalSha(ctx, pipe, keys, args...)
		then(pipe)
		_, err := pipe.Exec(ctx)
		switch failed := reply.Err(); {
		case failed == nil:
			return reply.Val(), Failure(ctx, name, err)
		case !redis.HasErrorPrefix(failed, "NOSCRIPT"):
			return nil, scriptFailure(ctx, name, failed)
		case !redis.HasErrorPrefix(err, "NOSCRIPT"): // one of before: it comes first
			return nil, Failure(ctx, name, err)
		}
	}
	reply, err := s.Script(ctx, name, keys, args...)
	if err != nil {
		return nil, err
	}
	pipe = s.rdb.Pipeline()
	then(pipe)
	_, err = pipe.Exec(ctx)
	return reply, Failure(ctx, name, err)
}

// ScriptCall is one of several calls of a script.
type ScriptCall struct {
	Keys []string
	Args []any
}

// ScriptEach runs a script once for each call, all of them in one round trip and each
// atomic by itself: a failure of one has no effect on the others. It returns the reply or
// the error of each call, in the order of calls; of the two, one is nil. A call that was not
// sent, because the connection broke before it, has the error of the pipeline.
func (s *Store) ScriptEach(ctx context.Context, name string, calls []ScriptCall) ([]any, []error) {
	replies, errs := make([]any, len(calls)), make([]error, len(calls))
	if len(calls) == 0 {
		return replies, errs
	}
	pipe := s.rdb.Pipeline()
	sent := make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		sent[i] = s.scripts[name].EvalSha(ctx, pipe, c.Keys, c.Args...)
	}
	_, failed := pipe.Exec(ctx)
	for i, cmd := range sent {
		replies[i] = cmd.Val()
		switch err := cmd.Err(); {
		case err == nil && replies[i] != nil:
		case err == nil: // it was not sent
			errs[i] = Failure(ctx, name, failed)
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			replies[i], errs[i] = s.Script(ctx, name, calls[i].Keys, calls[i].Args...)
		default:
			errs[i] = scriptFailure(ctx, name, err)
		}
	}
	return replies, errs
}

// onceScripter sends scripts without the client's retries.
type onceScripter struct{ redis.UniversalClient }

// EvalSha runs a script by its digest.
func (o onceScripter) EvalSha(ctx context.Context, digest string, keys []string, args ...any) *redis.Cmd {
	return o.send(ctx, "evalsha", digest, keys, args)
}

// Eval runs a script by its text.
func (o onceScripter) Eval(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	return o.send(ctx, "eval", text, keys, args)
}

func (o onceScripter) send(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	_ = o.Process(ctx, onceCmd{cmd}) // the command keeps its error
	return cmd
}

// Once returns a command that the client does not repeat after a lost reply. The client does
// not repeat a pipeline that contains one either.
func Once(ctx context.Context, args ...any) redis.Cmder {
	return onceCmd{redis.NewCmd(ctx, args...)}
}

// onceCmd is a command that the client does not repeat.
type onceCmd struct{ *redis.Cmd }

// NoRetry implements redis.Cmder.
func (onceCmd) NoRetry() bool { return true }
