package jetstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/codesous/sous/api"
)

// retryAfter is the RetryAfter of errors if the store does not answer.
const retryAfter = time.Second

// request runs do within the request timeout and converts its error into one of package
// api; a conflict stays the client's error. op names the operation in error texts.
func (s *Store) request(ctx context.Context, op string, do func(ctx context.Context) error) error {
	if err := s.connected(ctx, op); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return failure(ctx, op, do(bounded))
}

// connected returns an error without a connection. The client would buffer the request and
// send it after its caller has given up.
func (s *Store) connected(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return failure(ctx, op, err)
	}
	if conn := s.js.Conn(); !conn.IsConnected() {
		return failure(ctx, op, fmt.Errorf("the connection is %s", conn.Status()))
	}
	return nil
}

// failure converts an error of the client during op into one of package api. The error of
// an ended context and a conflict stay as they are. Every error that is not a response of
// the server becomes CodeStoreUnavailable.
func failure(ctx context.Context, op string, err error) error {
	if err == nil || conflict(err) {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", op, cause)
	}
	if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, natsjs.ErrStreamMessageExceedsMaximum) {
		return api.Wrap(api.CodeBodyLimit, err, "the record is larger than the server takes")
	}
	if errors.Is(err, natsjs.ErrInvalidBucketName) {
		return api.Wrap(api.CodeInvalid, err, "the bucket's name is not one")
	}
	var answer *natsjs.APIError
	if errors.As(err, &answer) && answer.Code < http.StatusInternalServerError {
		return api.Wrap(api.CodeInternal, err, op)
	}
	e := api.Wrap(api.CodeStoreUnavailable, fmt.Errorf("%s: %w", op, err), "the state store does not answer")
	e.RetryAfter = retryAfter
	return e
}

// conflict reports whether a write failed because the record has another revision.
func conflict(err error) bool {
	var answer *natsjs.APIError
	return errors.Is(err, natsjs.ErrKeyExists) || errors.Is(err, natsjs.ErrKeyRevisionMismatch) ||
		errors.As(err, &answer) && (answer.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequence ||
			answer.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequenceConstant)
}
