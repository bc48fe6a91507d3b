package jobstore

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Words reads a script's list.
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

// Failure types an error of a plain command.
func Failure(ctx context.Context, op string, err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return storage.Failure(ctx, op, err)
}

// Indexes reads the places, from 1, that a script answered of n, as indexes.
func Indexes(script string, words []string, n int) ([]int, error) {
	out := make([]int, len(words))
	for i, word := range words {
		at, err := strconv.Atoi(word)
		if err != nil || at < 1 || at > n {
			return nil, api.Errorf(api.CodeInternal, "%s answered with place %q", script, word)
		}
		out[i] = at - 1
	}
	return out, nil
}
