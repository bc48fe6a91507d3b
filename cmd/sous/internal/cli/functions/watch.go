package functions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// settle is how long files must be at rest before they are deployed: editors and
// version control write several files, each in several steps.
const settle = 150 * time.Millisecond

// watchAndDeploy deploys now and after each change, until ctx ends. What is
// wrong with the source is reported and waits for the next change.
func (a commands) watchAndDeploy(ctx context.Context, t *command.Target, d deployment) error {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = changes.Close() }() // nothing is lost with it
	if err := watchFolders(changes, d.source); err != nil {
		return err
	}
	if err := a.deployWatched(ctx, t, d); err != nil {
		return err
	}
	a.Note("watching %s; Ctrl-C ends it", d.source.root)
	quiet := time.NewTimer(0)
	if !quiet.Stop() {
		<-quiet.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil // an interrupt is how watching ends
		case err := <-changes.Errors:
			return fmt.Errorf("watch: %w", err)
		case e := <-changes.Events:
			if d.source.concerns(e) {
				quiet.Reset(settle)
			}
		case <-quiet.C:
			// The ignore file may have changed, folders may have come.
			source, err := openSource(d.source.root)
			if err != nil {
				return err
			}
			d.source = source
			if err := watchFolders(changes, source); err != nil {
				return err
			}
			if err := a.deployWatched(ctx, t, d); err != nil {
				return err
			}
		}
	}
}

// deployWatched deploys and gives on only what no edit can mend: an interrupt.
func (a commands) deployWatched(ctx context.Context, t *command.Target, d deployment) error {
	err := a.deploy(ctx, t, d)
	if err != nil && ctx.Err() == nil {
		a.Report(err)
	}
	return nil
}

// watchFolders watches each folder that may hold a part of the bundle; those
// that are watched already stay so.
func watchFolders(w *fsnotify.Watcher, s *sourceDir) error {
	err := s.walk(func(rel string, d fs.DirEntry) error {
		if !d.IsDir() {
			return nil
		}
		return w.Add(filepath.Join(s.root, filepath.FromSlash(rel)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while it was walked; its removal is an event too
	}
	return err
}

// concerns says whether e may have changed the bundle.
func (s *sourceDir) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	rel, err := filepath.Rel(s.root, e.Name)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	return rel == ignoreFile || !s.skips(rel, false)
}
