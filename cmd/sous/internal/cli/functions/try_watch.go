package functions

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codesous/sous/api"
)

// watchAndTry runs the function of the folder dir at first and after each change, until ctx
// ends. It reports errors of a run and waits for the next change. It fails only if the folder
// cannot be watched or is gone.
func (a commands) watchAndTry(ctx context.Context, dir string, f tryFlags) error {
	if err := f.readStdin(a.Stdin); err != nil {
		return err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	files, err := f.files()
	if err != nil {
		return err
	}
	var source *sourceDir
	first := true
	return watch{
		folders: func() (folders []string, err error) {
			source, err = openSource(root)
			if err != nil {
				return nil, err
			}
			folders, err = source.folders()
			for _, file := range files {
				folders = append(folders, filepath.Dir(file)) // editors replace files
			}
			return folders, err
		},
		concerns: func(path string) bool { return source.concernsLocal(path) || slices.Contains(files, path) },
		act: func(ctx context.Context) error {
			if !first {
				a.Note("\nrunning again")
			}
			if err := a.tryFolder(ctx, dir, f); err != nil && ctx.Err() == nil {
				a.Report(err)
			}
			if first {
				a.Note("watching %s; Ctrl-C ends it", dir)
			}
			first = false
			return nil
		},
	}.run(ctx)
}

// files returns the absolute paths of the files that flags name.
func (f *tryFlags) files() ([]string, error) {
	var named []string
	for _, value := range []string{f.event, f.config, f.body} {
		if file, ok := strings.CutPrefix(value, "@"); ok {
			named = append(named, file)
		}
	}
	if f.secrets != "" {
		named = append(named, f.secrets)
	}
	var out []string
	for _, file := range named {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// readStdin replaces a flag that is - by what stdin has, since that can be read only once. It
// reads at most one byte more than the flag may have.
func (f *tryFlags) readStdin(stdin io.Reader) error {
	for _, flag := range []struct {
		value *string
		limit int64
	}{{&f.event, api.MaxEventBytes}, {&f.config, api.MaxRequestBytes}} {
		if *flag.value != "-" {
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(stdin, flag.limit+1))
		if err != nil {
			return err
		}
		*flag.value = string(raw)
	}
	return nil
}
