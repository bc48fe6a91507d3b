package feed_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
)

// The variables of a child process, which fills the mirror in a folder from a store until it is killed.
const (
	childDir = "SOUS_TEST_MIRROR_DIR"
	childURL = "SOUS_TEST_MIRROR_STORE"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(context.Background(), dir, os.Getenv(childURL)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child fills the mirror in dir.
func child(ctx context.Context, dir, url string) error {
	store, err := storage.Open(ctx, storage.Config{URL: url})
	if err != nil {
		return err
	}
	broker, err := queue.New(ctx, store, queue.Config{})
	if err != nil {
		return err
	}
	m, err := mirror.New(mirror.Config{Dir: dir})
	if err != nil {
		return err
	}
	loop, err := feed.New(store, m, broker.Records(), feed.Config{Watch: broker.Watch})
	if err != nil {
		return err
	}
	loop.Run(ctx)
	return nil
}
