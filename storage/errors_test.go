package storage

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
)

// reply is an error that a server sent.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestFailureCodes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want api.Code
	}{
		"nothing":            {nil, ""},
		"refused":            {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, api.CodeStoreUnavailable},
		"reset":              {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, api.CodeStoreUnavailable},
		"closed by server":   {io.EOF, api.CodeStoreUnavailable},
		"no free connection": {redis.ErrPoolTimeout, api.CodeStoreUnavailable},
		"closed client":      {redis.ErrClosed, api.CodeStoreUnavailable},
		"own time limit":     {context.DeadlineExceeded, api.CodeStoreUnavailable},
		"loading":            {reply("LOADING Redis is loading the dataset in memory"), api.CodeStoreUnavailable},
		"replica":            {reply("READONLY You can't write against a read only replica."), api.CodeStoreUnavailable},
		"cluster down":       {reply("CLUSTERDOWN The cluster is down"), api.CodeStoreUnavailable},
		"slot moving":        {reply("TRYAGAIN Multiple keys request during rehashing of slot"), api.CodeStoreUnavailable},
		"master gone":        {reply("MASTERDOWN Link with MASTER is down"), api.CodeStoreUnavailable},
		"disk full":          {reply("MISCONF Redis is configured to save RDB snapshots"), api.CodeStoreUnavailable},
		"too many clients":   {reply("ERR max number of clients reached"), api.CodeStoreUnavailable},
		"wrong type":         {reply("WRONGTYPE Operation against a key"), api.CodeInternal},
		"raised in a script": {reply("ERR running script (call to f_1): CS_STORE_CONFLICT x"), api.CodeInternal},
		"returned by script": {reply("CS_STORE_CONFLICT x"), api.CodeStoreConflict},
		"typed already":      {api.Errorf(api.CodeAliasNotFound, "x"), api.CodeAliasNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scriptFailure(t.Context(), "op", tt.err)
			if code := api.ErrorCode(got); code != tt.want {
				t.Errorf("code %q, want %q (%v)", code, tt.want, got)
			}
			var e *api.Error
			if tt.want == api.CodeStoreUnavailable && (!errors.As(got, &e) || e.RetryAfter != time.Second) {
				t.Errorf("got error %v, want a Retry-After of %s", got, time.Second)
			}
		})
	}
}

func TestFailureKeepsCallersContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Failure(ctx, "op", io.EOF); !errors.Is(err, context.Canceled) || api.ErrorCode(err) != api.CodeInternal {
		t.Errorf("Failure with a cancelled context: got %v, want %v without a code", err, context.Canceled)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := Failure(ctx, "op", &net.OpError{Op: "read", Err: syscall.ETIMEDOUT}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Failure past the deadline: got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestStoreURLs(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		url     string
		cluster bool
		addrs   int
		code    api.Code
	}{
		"single":        {"redis://u:p@h:1/0", false, 1, ""},
		"tls":           {"rediss://h:1", false, 1, ""},
		"cluster":       {"redis-cluster://h:1,i:2,j:3", true, 3, ""},
		"cluster auth":  {"redis-cluster://u:p@h:1,i:2", true, 2, ""},
		"one seed node": {"redis-cluster://h:1", true, 1, ""},
		"sentinel":      {"redis-sentinel://h:1,i:2/main", false, 2, ""},
		"no master":     {"redis-sentinel://h:1", false, 0, api.CodeInvalid},
		"no port":       {"redis-cluster://h:1,i", false, 0, api.CodeInvalid},
		"scheme":        {"http://h:1", false, 0, api.CodeInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := universalOptions(Config{URL: tt.url})
			if code := api.ErrorCode(err); code != tt.code {
				t.Fatalf("code %q, want %q: %v", code, tt.code, err)
			}
			if err == nil && (o.IsClusterMode != tt.cluster || len(o.Addrs) != tt.addrs) {
				t.Errorf("got cluster %v and addresses %v, want cluster %v and %d addresses", o.IsClusterMode, o.Addrs, tt.cluster, tt.addrs)
			}
		})
	}
}
