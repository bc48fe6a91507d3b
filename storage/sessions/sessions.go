// Package sessions keeps the sessions of people who signed in to the console with an API key.
//
// A session is a secret that a browser presents. Only its SHA-256 is stored, as a member of the
// sorted set of its key, with the time at which it ends. For the key with the digest 9f86d0…:
//
//	cs:session:9f86d0…    {2c26b4…: 1760000000000, …}
//
// A reader of the store cannot use a session: it knows neither the secret nor the key.
package sessions

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// MaxPerKey bounds the sessions of one key. A further one ends the one that would end first.
const MaxPerKey = 32

// Sessions keeps sessions in a store. It is safe for concurrent use.
type Sessions struct{ s *storage.Store }

// New returns the sessions in s.
func New(s *storage.Store) *Sessions { return &Sessions{s} }

// Create stores a session of the API key with the digest key until ends, and removes the sessions
// that have ended at now. Repeating it changes nothing, and so does its interruption: the session
// is written first. Errors: CodeStoreUnavailable.
func (x *Sessions) Create(ctx context.Context, key, session string, now, ends time.Time) error {
	set := x.s.Keys().Sessions(key)
	pipe := x.s.Client().Pipeline()
	pipe.ZAdd(ctx, set, redis.Z{Score: float64(ends.UnixMilli()), Member: session})
	pipe.ZRemRangeByScore(ctx, set, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
	pipe.ZRemRangeByRank(ctx, set, 0, -MaxPerKey-1)
	pipe.PExpire(ctx, set, ends.Sub(now))
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "create a session", err)
}

// Ends returns when a session of a key ends, the zero time if there is no such session. Errors:
// CodeStoreUnavailable.
func (x *Sessions) Ends(ctx context.Context, key, session string) (time.Time, error) {
	ms, err := x.s.Client().ZScore(ctx, x.s.Keys().Sessions(key), session).Result()
	if errors.Is(err, redis.Nil) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, storage.Failure(ctx, "read a session", err)
	}
	return time.UnixMilli(int64(ms)), nil
}

// Delete ends a session. It succeeds if there is none. Errors: CodeStoreUnavailable.
func (x *Sessions) Delete(ctx context.Context, key, session string) error {
	err := x.s.Client().ZRem(ctx, x.s.Keys().Sessions(key), session).Err()
	return storage.Failure(ctx, "end a session", err)
}
