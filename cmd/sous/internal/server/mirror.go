package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/metrics"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/bulk"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/mirror"
	"github.com/codesous/sous/storage/mirror/feed"
	mirrorsearch "github.com/codesous/sous/storage/mirror/search"
)

// mirrorSettings are the settings of the mirror.
type mirrorSettings struct {
	Dir      string `koanf:"mirror-dir"`       // "": see mirrorDir
	MaxBytes string `koanf:"mirror-max-bytes"` // a size; 0: no bound
	MinFree  string `koanf:"mirror-min-free"`  // a size
}

const (
	defaultMirrorBytes = "16GiB" // about 8,000,000 jobs
	defaultMirrorFree  = "1GiB"
	// leastMirrorBytes is the least bound of the file: smaller ones hold no batch of records.
	leastMirrorBytes = 64 << 20
)

// registerMirror adds the settings of the mirror to flags.
func registerMirror(flags *pflag.FlagSet) {
	flags.String("mirror-dir", "", "folder of the file for searches across queues and functions, of the role mirror (default: in data-dir for dev, else in $STATE_DIRECTORY or $XDG_STATE_HOME/sous)")
	flags.String("mirror-max-bytes", defaultMirrorBytes, "largest size of that file with its write-ahead log, such as 500MiB or 64GiB; the mirror stops when it is reached (0: no bound)")
	flags.String("mirror-min-free", defaultMirrorFree, "free space of its disk below which the mirror stops, such as 512MiB (0: none)")
}

// mirrorConfig returns the configuration of the mirror without its folder. Errors: sizes that are none.
func (s *settings) mirrorConfig() (mirror.Config, error) {
	out := mirror.Config{Store: s.storeID()}
	for name, of := range map[string]struct {
		text  string
		bytes *int64
	}{"mirror-max-bytes": {s.Mirror.MaxBytes, &out.MaxBytes}, "mirror-min-free": {s.Mirror.MinFree, &out.MinFree}} {
		n, err := parseAmount(cmp.Or(of.text, "0"))
		if err != nil || n < 0 {
			return out, fmt.Errorf("%s %q: want a number of bytes, or a size such as 2GiB", name, of.text)
		}
		*of.bytes = n
	}
	if out.MaxBytes > 0 && out.MaxBytes < leastMirrorBytes {
		return out, fmt.Errorf("mirror-max-bytes %q: want at least 64MiB, or 0 for no bound", s.Mirror.MaxBytes)
	}
	return out, nil
}

// mirrorFolder is the folder of mirrors within the state folders of a user and of a service.
const mirrorFolder = "mirror"

// mirrorDir returns the folder of the mirror. Where no setting names one, dev has it beside its store,
// and serve within $STATE_DIRECTORY, which systemd sets, or the state folder of the user. There the
// folder has a name for each store and address, so that servers on one machine have their own.
func (s *settings) mirrorDir() (string, error) {
	if s.Mirror.Dir != "" {
		return filepath.Abs(s.Mirror.Dir)
	}
	if s.DataDir != "" {
		return filepath.Join(s.DataDir, mirrorFolder), nil
	}
	state := filepath.SplitList(os.Getenv("STATE_DIRECTORY"))
	name := digest(s.storeID() + " " + s.Listen)
	if len(state) > 0 && filepath.IsAbs(state[0]) {
		return filepath.Join(state[0], mirrorFolder, name), nil
	}
	home, err := userState()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, mirrorFolder, name), nil
}

// storeID identifies the store in the file of the mirror: a file of another store is replaced. It has
// no password.
func (s *settings) storeID() string {
	parsed, err := url.Parse(s.Store)
	if err != nil || s.Store == "" {
		return digest(cmp.Or(s.Store, s.DataDir))
	}
	parsed.User = nil
	return digest(parsed.String())
}

// digest returns a name for a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// openMirror opens the mirror, and the bulk operations, which search it.
func (p *platform) openMirror(life context.Context, s settings, store *storage.Store, broker *queue.Broker) error {
	if err := p.keepMirror(life, s, store, broker); err != nil {
		return err
	}
	return p.runBulk(life, s, store, broker)
}

// keepMirror opens the mirror of a replica with that role, and starts what fills it until life ends. Where
// the folder cannot be used, the mirror is stopped and says so; everything else goes on.
func (p *platform) keepMirror(life context.Context, s settings, store *storage.Store, broker *queue.Broker) error {
	if !s.has(roleMirror) {
		return nil
	}
	logger := p.logger.Named("mirror")
	dir, err := s.mirrorDir()
	if err != nil {
		logger.Warn("this replica has no mirror: name a folder by mirror-dir", zap.Error(err))
		return nil
	}
	cfg, err := s.mirrorConfig()
	if err != nil {
		return err
	}
	cfg.Dir = dir
	p.mirror, err = mirror.New(cfg)
	if err != nil {
		return err
	}
	f, err := feed.New(store, p.mirror, broker.Records(), feed.Config{Logger: logger, Metrics: p.metrics, Watch: broker.Watch})
	if err != nil {
		return err
	}
	p.fed = make(chan struct{})
	go func() {
		defer close(p.fed)
		f.Run(life)
	}()
	return nil
}

// runBulk opens the bulk operations. A replica with the role mirror runs them until life ends.
func (p *platform) runBulk(life context.Context, s settings, store *storage.Store, broker *queue.Broker) error {
	var err error
	p.bulk, err = bulk.New(store, broker, mirrorsearch.New(mirrorsearch.Of(p.mirror), 0), p.logger.Named("bulk"))
	if err != nil {
		return err
	}
	if !s.has(roleMirror) {
		return nil
	}
	if err := metrics.Register(p.metrics, p.bulk.Collectors()...); err != nil {
		return err
	}
	p.loops.Go(func() { p.bulk.Run(life) })
	return nil
}

// resetMirror removes the mirror in a folder, if there is one.
func resetMirror(dir string) error {
	err := mirror.Remove(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
