package cadencetest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails for goroutines that the tests leave. A poller of the Cadence library that
// met an error sleeps for up to ten seconds, also when its worker has been stopped, and one
// goroutine waits for it: goleak waits for a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("go.uber.org/cadence/internal/common/backoff.(*ConcurrentRetrier).throttleInternal"),
		goleak.IgnoreAnyFunction("go.uber.org/cadence/internal/common/util.AwaitWaitGroup.func1"),
	)
}
