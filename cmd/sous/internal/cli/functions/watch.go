package functions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// settle is the time without changes before a deployment: editors and version control
// write several files, each in several steps. Each change starts it again, so a build that
// writes for seconds is deployed once, at its end.
const settle = 150 * time.Millisecond

// watchAndDeploy deploys immediately and after each change, until ctx ends. It reports
// errors of a deployment, of the source as well as of the server, and waits for the next
// change. It fails only if the folder cannot be watched or is gone. Changes during a
// deployment are deployed after it.
func (a commands) watchAndDeploy(ctx context.Context, t *command.Target, d deployment) error {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = changes.Close() }() // an error of closing loses nothing
	if err := watchFolders(changes, d.source); err != nil {
		return err
	}
	a.deployWatched(ctx, t, d)
	a.Note("watching %s; Ctrl-C ends it", d.source.root)
	quiet := time.NewTimer(0)
	if !quiet.Stop() {
		<-quiet.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil // an interrupt ends watching; it is no error
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
			a.deployWatched(ctx, t, d)
		}
	}
}

// deployWatched deploys, and reports an error: the next change may correct it.
func (a commands) deployWatched(ctx context.Context, t *command.Target, d deployment) {
	if err := a.deploy(ctx, t, d); err != nil && ctx.Err() == nil {
		a.Report(err)
	}
}

// watchFolders adds each folder that may hold a file of the bundle to w. Adding a folder
// twice does no harm.
func watchFolders(w *fsnotify.Watcher, s *sourceDir) error {
	err := s.walk(func(rel string, d fs.DirEntry) error {
		if !d.IsDir() {
			return nil
		}
		return w.Add(filepath.Join(s.root, filepath.FromSlash(rel)))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed during the walk; its removal is an event too
	}
	return err
}

// concerns reports whether e may have changed the bundle. A change of the ignore file may,
// although the file is not part of the bundle.
func (s *sourceDir) concerns(e fsnotify.Event) bool {
	if e.Op == fsnotify.Chmod {
		return false
	}
	rel, err := filepath.Rel(s.root, e.Name)
	if err != nil {
		return false
	}
	rel = filepath.ToSlash(rel)
	return rel == ignoreFile || rel == manifest.SettingsFile || !s.skips(rel, false)
}
