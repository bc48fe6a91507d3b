package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// retryAfter is the Retry-After of errors for a store that does not answer.
const retryAfter = time.Second

// unavailablePrefixes begin the replies of a running server that cannot serve now: it is
// loading, failing over, read-only or full, or a slot is moving.
var unavailablePrefixes = []string{
	"LOADING", "READONLY", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS",
	"MISCONF", "OOM", "BUSY", "MOVED", "ASK", "UNBLOCKED", "max number of clients reached",
}

// Failure converts err, which the client returned from the operation op, to an error of
// this package. An *api.Error is returned as it is. An error of ctx stays a context error.
// A reply of the server is api.CodeInternal, unless it says that the server cannot serve
// now. Every other error means that the server was not reached: api.CodeStoreUnavailable
// with a Retry-After.
func Failure(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	var known *api.Error
	if errors.As(err, &known) {
		return err
	}
	if cause := callerEnded(ctx); cause != nil {
		return fmt.Errorf("%s: %w", op, cause)
	}
	var reply redis.Error
	if errors.As(err, &reply) && !unavailable(err) {
		return api.Wrap(api.CodeInternal, err, op)
	}
	e := api.Wrap(api.CodeStoreUnavailable, fmt.Errorf("%s: %w", op, err), "the store does not answer")
	e.RetryAfter = retryAfter
	return e
}

// callerEnded returns the error of ctx. A connection's deadline follows the context's and
// can pass a moment earlier.
func callerEnded(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}

func unavailable(reply error) bool {
	for _, p := range unavailablePrefixes {
		if redis.HasErrorPrefix(reply, p) {
			return true
		}
	}
	return false
}

// scriptFailure is Failure for a script's reply: an error that the script
// returned begins with a code of package api and becomes that error.
func scriptFailure(ctx context.Context, op string, err error) error {
	var reply redis.Error
	if errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "CS_") {
		code, text, _ := strings.Cut(reply.Error(), " ")
		return api.Errorf(api.Code(code), "%s", text)
	}
	return Failure(ctx, op, err)
}

// Refused reports whether the server answered a question with an error although it
// can serve: an access list forbids it, or the service does not offer it.
func Refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !unavailable(err)
}

// Fatal reports whether err concerns more than a single record: the store does not answer,
// or ctx has ended. A loop over many records then stops instead of failing once for each.
func Fatal(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || api.ErrorCode(err) == api.CodeStoreUnavailable)
}
