package functions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/codesous/sous/api/manifest"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// settle is the time without changes before a watch acts: editors and version control
// write several files, each in several steps. Each change starts it again, so a build that
// writes for seconds is deployed once, at its end.
const settle = 150 * time.Millisecond

// watch acts on the changes of files.
type watch struct {
	// folders returns the folders whose files count. It is called before each act, because
	// folders come and go. A folder that does not exist is left out.
	folders func() ([]string, error)
	// concerns reports whether the change of a file or folder counts.
	concerns func(path string) bool
	// act is called at first, and after each burst of changes that count. Changes during an
	// act cause another one. An error of act ends the watch.
	act func(ctx context.Context) error
}

// run acts until ctx ends. It fails if a folder cannot be watched, and with an error of act.
func (w watch) run(ctx context.Context) error {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { _ = changes.Close() }() // an error of closing loses nothing
	if err := w.next(ctx, changes); err != nil {
		return err
	}
	quiet := time.NewTimer(settle)
	quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // an interrupt ends watching; it is no error
		case err := <-changes.Errors:
			return fmt.Errorf("watch: %w", err)
		case e := <-changes.Events:
			if e.Op != fsnotify.Chmod && w.concerns(filepath.Clean(e.Name)) {
				quiet.Reset(settle)
			}
		case <-quiet.C:
			if err := w.next(ctx, changes); err != nil {
				return err
			}
		}
	}
}

// next watches the folders of now, and acts.
func (w watch) next(ctx context.Context, changes *fsnotify.Watcher) error {
	folders, err := w.folders()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		// To add a folder twice does no harm. The removal of one is an event of its parent.
		if err := changes.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("watch %s: %w", folder, err)
		}
	}
	return w.act(ctx)
}

// watchAndDeploy deploys immediately and after each change, until ctx ends. It reports
// errors of a deployment, of the source as well as of the server, and waits for the next
// change. It fails only if the folder cannot be watched or is gone.
func (a commands) watchAndDeploy(ctx context.Context, t *command.Target, d deployment) error {
	first := true
	return watch{
		folders: func() (folders []string, err error) {
			// The ignore file may have changed.
			d.source, err = openSource(d.source.root)
			if err != nil {
				return nil, err
			}
			return d.source.folders()
		},
		concerns: func(path string) bool { return d.source.concerns(path) },
		act: func(ctx context.Context) error {
			// The next change may correct an error.
			if err := a.deploy(ctx, t, d); err != nil && ctx.Err() == nil {
				a.Report(err)
			}
			if first {
				a.Note("watching %s; Ctrl-C ends it", d.source.root)
			}
			first = false
			return nil
		},
	}.run(ctx)
}

// folders returns each folder that may hold a file of the bundle.
func (s *sourceDir) folders() ([]string, error) {
	var out []string
	err := s.walk(func(rel string, d fs.DirEntry) error {
		if d.IsDir() {
			out = append(out, filepath.Join(s.root, filepath.FromSlash(rel)))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil // removed during the walk; its removal is an event too
	}
	return out, err
}

// concerns reports whether a change of the file or folder at path may change the
// deployment. The ignore file and the settings may, although they are not part of the bundle.
func (s *sourceDir) concerns(path string) bool {
	rel, ok := s.relative(path)
	return ok && (rel == ignoreFile || rel == manifest.SettingsFile || !s.skips(rel, false))
}

// concernsLocal is concerns for a function that runs with the values of localFiles.
func (s *sourceDir) concernsLocal(path string) bool {
	rel, ok := s.relative(path)
	return s.concerns(path) || ok && slices.Contains(localFiles, rel)
}

// relative returns the slash-separated path of a file from the folder. It reports false for a
// path outside the folder.
func (s *sourceDir) relative(path string) (rel string, ok bool) {
	rel, err := filepath.Rel(s.root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}
