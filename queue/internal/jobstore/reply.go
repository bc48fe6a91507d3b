package jobstore

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Words returns a reply that is a list as strings. Integers are formatted in base 10; nil
// and other elements become "". A reply that is no list is an empty one. MGET and HMGET reply
// with nil for a missing key or field, which therefore reads as "".
func Words(reply any) []string {
	list, _ := reply.([]any)
	out := make([]string, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case string:
			out[i] = v
		case int64:
			out[i] = ScoreText(v)
		}
	}
	return out
}

// Failure returns err, the result of a plain command, with the code that storage.Failure
// assigns. A missing key (redis.Nil) is no failure. op names the operation, for example
// "read a queue".
func Failure(ctx context.Context, op string, err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return storage.Failure(ctx, op, err)
}

// Indexes converts the positions, from 1 to n, that script replied to indexes from 0.
// Errors: CodeInternal for any other word.
func Indexes(script string, words []string, n int) ([]int, error) {
	out := make([]int, len(words))
	for i, word := range words {
		at, err := strconv.Atoi(word)
		if err != nil || at < 1 || at > n {
			return nil, api.Errorf(api.CodeInternal, "%s replied with position %q", script, word)
		}
		out[i] = at - 1
	}
	return out, nil
}
