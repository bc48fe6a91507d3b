// Package upgradetest checks that this release reads the records of the previous one: see
// docs/upgrade.md. Each folder of testdata belongs to a release and holds what its binary
// left in a store.
package upgradetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// writeRecords writes the commands that create every key of the store again, in the format
// of a client's requests, which `redis-cli --pipe` reads as well. Times to live are relative.
func writeRecords(ctx context.Context, w io.Writer, store *redis.Client) error {
	keys, err := store.Keys(ctx, "*").Result()
	if err != nil {
		return err
	}
	slices.Sort(keys)
	for _, key := range keys {
		commands, err := commandsOf(ctx, store, key)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		for _, args := range commands {
			if err := writeCommand(w, args); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeCommand(w io.Writer, args []string) error {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, arg := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(arg), arg)
	}
	_, err := io.WriteString(w, text)
	return err
}

// commandsOf returns the commands that create one key again.
func commandsOf(ctx context.Context, store *redis.Client, key string) ([][]string, error) {
	kind, err := store.Type(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	var commands [][]string
	switch kind {
	case "string":
		var value string
		value, err = store.Get(ctx, key).Result()
		commands = [][]string{{"SET", key, value}}
	case "hash":
		commands, err = oneCommand(ctx, store, []string{"HGETALL", key}, "HSET", key)
	case "set":
		commands, err = oneCommand(ctx, store, []string{"SMEMBERS", key}, "SADD", key)
	case "list":
		commands, err = oneCommand(ctx, store, []string{"LRANGE", key, "0", "-1"}, "RPUSH", key)
	case "zset":
		var members []redis.Z
		members, err = store.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, m := range members {
			commands = append(commands, []string{"ZADD", key, strconv.FormatFloat(m.Score, 'f', -1, 64), m.Member.(string)})
		}
	case "stream":
		commands, err = streamCommands(ctx, store, key)
	default:
		err = fmt.Errorf("cannot write a %s", kind)
	}
	if err != nil {
		return nil, err
	}
	left, err := store.PTTL(ctx, key).Result()
	if left > 0 {
		commands = append(commands, []string{"PEXPIRE", key, strconv.FormatInt(int64(left/time.Millisecond), 10)})
	}
	return commands, err
}

// oneCommand returns the command that starts with first and goes on with all that read
// returns.
func oneCommand(ctx context.Context, store *redis.Client, read []string, first ...string) ([][]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, anys(read)...)
	if read[0] == "HGETALL" { // its reply may be a map
		m := redis.NewMapStringStringCmd(ctx, anys(read)...)
		err := store.Process(ctx, m)
		for field, value := range m.Val() {
			first = append(first, field, value)
		}
		return [][]string{first}, err
	}
	err := store.Process(ctx, cmd)
	return [][]string{append(first, cmd.Val()...)}, err
}

func streamCommands(ctx context.Context, store *redis.Client, key string) ([][]string, error) {
	entries, err := store.XRange(ctx, key, "-", "+").Result()
	var commands [][]string
	for _, e := range entries {
		args := []string{"XADD", key, e.ID}
		for field, value := range e.Values {
			args = append(args, field, value.(string))
		}
		commands = append(commands, args)
	}
	return commands, err
}

func anys(args []string) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		out[i] = arg
	}
	return out
}

// readRecords sends the commands that writeRecords wrote to a store.
func readRecords(ctx context.Context, r io.Reader, store redis.UniversalClient) error {
	in := bufio.NewReader(r)
	for {
		n, err := readLength(in, '*')
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("a command: %w", err)
		}
		args := make([]any, n)
		for i := range args {
			size, err := readLength(in, '$')
			if err != nil {
				return fmt.Errorf("an argument: %w", err)
			}
			arg := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, arg); err != nil {
				return err
			}
			args[i] = arg[:size]
		}
		if err := store.Do(ctx, args...).Err(); err != nil {
			return fmt.Errorf("%s %s: %w", args[0], args[1], err)
		}
	}
}

// readLength reads a line such as "$12". The error is io.EOF where the text ends before it.
func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q is not a length after %q", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}
