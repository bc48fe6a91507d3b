package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storeserver"
)

// diskActivations is the number of records that the disk benchmark stores, times options.scale.
const diskActivations = 200_000

// disk measures the bytes on KVRocks' disk for an activation of hello, after compaction. A
// redis-server keeps its data in memory and has no such figure.
func disk(ctx context.Context, o options) ([]row, error) {
	if o.store.Kind != storeserver.KVRocks {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "sousbench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := startStore(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	s, err := storage.Open(ctx, storage.Config{URL: "redis://" + server.addr})
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }() // all has been written
	records, now, n := activations.New(s), s.NowMS(), max(1, int(diskActivations*o.scale))
	err = inParallel(ctx, 512, n, func(ctx context.Context, i int) error {
		_, _, err := records.RecordEnded(ctx, storedHello(now-int64(n-i)), nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := compact(ctx, server); err != nil {
		return nil, err
	}
	bytes, err := tableBytes(dir)
	if err != nil {
		return nil, err
	}
	return []row{{name: fmt.Sprintf("bytes for an activation of hello, of %d", n), value: fmt.Sprintf("%.0f", float64(bytes)/float64(n))}}, nil
}

// compact has KVRocks rewrite all its tables, and waits up to five minutes for the end. Before
// that, tables hold overwritten records, whose number depends on when the last ones were
// rewritten.
func compact(ctx context.Context, server *process) error {
	client := storeserver.Client(server.addr)
	defer func() { _ = client.Close() }() // it only asked
	if err := client.Do(ctx, "compact").Err(); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; {
		if err := sleep.For(ctx, 500*time.Millisecond); err != nil {
			return err
		}
		info, err := client.InfoMap(ctx).Result()
		if err != nil {
			return err
		}
		for _, section := range info {
			if section["is_compacting"] == "no" {
				return nil
			}
		}
	}
	return errors.New("KVRocks does not end its compaction")
}

// tableBytes returns the size of the tables and blobs below dir. The write-ahead log is not
// counted: its size depends on the last writes only.
func tableBytes(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".sst") && !strings.HasSuffix(path, ".blob") {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a compaction has removed it
		}
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
