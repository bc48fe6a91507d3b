package storage

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/lua"
)

// The scripts, by the names of their files in package lua.
const (
	scriptFunctionCreate     = "function_create.lua"
	scriptFunctionDelete     = "function_delete.lua"
	scriptPublish            = "publish.lua"
	scriptPublishAgain       = "publish_again.lua"
	scriptAliasSet           = "alias_set.lua"
	scriptAliasDelete        = "alias_delete.lua"
	scriptActivationFinish   = "activation_finish.lua"
	scriptActivationWithdraw = "activation_withdraw.lua"
)

// loadScripts reads every script of package lua, each behind prelude, and gives
// their texts as well.
func loadScripts(prelude string) (scripts map[string]*redis.Script, texts map[string]string, err error) {
	names, err := fs.Glob(lua.FS, "*.lua")
	if err != nil {
		return nil, nil, err
	}
	texts = make(map[string]string, len(names))
	scripts = make(map[string]*redis.Script, len(names))
	for _, name := range names {
		source, err := fs.ReadFile(lua.FS, name)
		if err != nil {
			return nil, nil, fmt.Errorf("read script %s: %w", name, err)
		}
		texts[name] = prelude + string(source)
		scripts[name] = redis.NewScript(texts[name])
	}
	return scripts, texts, nil
}

// eval runs a script by its digest, and by its text on a node that does not
// hold it (a new one, a restarted one, the other side of a failover). Errors
// that the script returned are typed by their code.
func (s *Store) eval(ctx context.Context, name string, keys []string, args ...any) (any, error) {
	reply, err := s.scripts[name].Run(ctx, s.rdb, keys, args...).Result()
	if err != nil {
		return nil, scriptFailure(ctx, name, err)
	}
	return reply, nil
}
