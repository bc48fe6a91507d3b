package storage

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Optional returns the string that a command read, or "" where there is none. It
// reads GET and HGET, and GETRANGE: of a missing key KVRocks replies nil to it, and
// redis-server an empty string. A script does the same by
//
//	redis.call('GETRANGE', KEYS[1], 0, 63) or ''
func Optional(cmd *redis.StringCmd) (string, error) {
	text, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

// ExecOptional executes a pipeline whose commands may find nothing. Exec returns the
// first error of any command, even redis.Nil; ExecOptional skips redis.Nil.
func ExecOptional(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, err := pipe.Exec(ctx)
	if !errors.Is(err, redis.Nil) {
		return err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}
