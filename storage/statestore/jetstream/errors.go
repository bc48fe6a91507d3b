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

// retryAfter is what a client is told to wait when the store does not answer.
const retryAfter = time.Second

// request makes a request in its time, and turns its failure into an error of package
// api.
func (s *Store) request(ctx context.Context, op string, do func(ctx context.Context) error) error {
	if err := s.connected(ctx, op); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return failure(ctx, op, do(bounded))
}

// connected fails at once without a connection: what is sent meanwhile would wait in
// the client, and be written when nobody expects it any more.
func (s *Store) connected(ctx context.Context, op string) error {
	if err := ctx.Err(); err != nil {
		return failure(ctx, op, err)
	}
	if conn := s.js.Conn(); !conn.IsConnected() {
		return failure(ctx, op, fmt.Errorf("the connection is %s", conn.Status()))
	}
	return nil
}

// failure turns what the client returned from op into errors of package api. A
// context that the caller ended stays a context error; conflicts stay what they are;
// whatever is no answer of the server means that it was not reached.
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
		return api.Wrap(api.CodeValidation, err, "the bucket's name is not one")
	}
	var answer *natsjs.APIError
	if errors.As(err, &answer) && answer.Code < http.StatusInternalServerError {
		return api.Wrap(api.CodeInternal, err, op)
	}
	e := api.Wrap(api.CodeStoreUnavailable, fmt.Errorf("%s: %w", op, err), "the state store does not answer")
	e.RetryAfter = retryAfter
	return e
}

// conflict says whether a write was refused since the record has another revision.
func conflict(err error) bool {
	var answer *natsjs.APIError
	return errors.Is(err, natsjs.ErrKeyExists) || errors.Is(err, natsjs.ErrKeyRevisionMismatch) ||
		errors.As(err, &answer) && (answer.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequence ||
			answer.ErrorCode == natsjs.JSErrCodeStreamWrongLastSequenceConstant)
}
