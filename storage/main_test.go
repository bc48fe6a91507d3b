package storage_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// embeddedChild names the environment variable that turns this test binary into
// a process that writes to the embedded store in that directory until it is
// killed.
const embeddedChild = "SOUS_TEST_EMBEDDED_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(embeddedChild); dir != "" {
		os.Exit(writeUntilKilled(dir))
	}
	goleak.VerifyTestMain(m)
}
