package embedded

import (
	"bufio"
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/codesous/sous/api"
)

// A snapshot file is snapshotMagic, one gob stream of a snapshotHeader and its
// entries, and the CRC-64 (ECMA, 8 bytes, big endian) of all that. The number in the magic is
// the version of the format; a file of another version is refused.
const snapshotMagic = "code-sous store snapshot 1\n"

// snapshotHeader precedes the entries. gob matches fields by name, so none may be renamed.
type snapshotHeader struct {
	TakenAtMS int64  // milliseconds since 1970
	Entries   int    // how many follow
	Journal   uint64 // the number of the first journal that follows
}

// snapshotEntry is one key; the field that Type names is set.
type snapshotEntry struct {
	Key        string
	Type       string
	ExpireAtMS int64 // 0: never
	String     string
	Set        []string
	Hash       map[string]string
	SortedSet  map[string]float64
	List       []string
	Stream     []miniredis.StreamEntry
}

// snapshot writes the file if data has changed since the last one. It is called by one
// goroutine at a time: save, and shutdown after save has ended.
func (e *Server) snapshot() error {
	if !e.dirty.Swap(false) {
		return nil
	}
	err := e.writeSnapshot()
	if err != nil {
		e.dirty.Store(true)
	}
	return err
}

// writeSnapshot starts a new journal at the moment of the copy. Until the new snapshot is
// in place, the old one with both journals holds the same data. The order is: copy and new
// journal, temporary file, sync, rename, sync of the directory, removal of old journals. The
// rename decides; whatever a crash leaves before it or after it is removed by Open or by the
// next snapshot. Commands wait only for the copy.
func (e *Server) writeSnapshot() error {
	now := time.Now()
	entries, journal, err := e.copyEntries(now)
	if err != nil {
		return err
	}
	header := snapshotHeader{TakenAtMS: now.UnixMilli(), Entries: len(entries), Journal: journal}
	tmp, err := os.CreateTemp(e.dir, snapshotFile+".*")
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	err = encodeSnapshot(tmp, header, entries)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(e.dir, snapshotFile))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), os.Remove(tmp.Name()))
	}
	if err := syncDir(e.dir); err != nil {
		return err
	}
	return removeJournals(e.dir, journal)
}

// copyEntries copies every key while no command runs, and directs later commands to a new
// journal, whose number it returns. Strings are shared, so the copy is fast.
func (e *Server) copyEntries(now time.Time) (entries []snapshotEntry, following uint64, err error) {
	e.still.mu.Lock()
	defer e.still.mu.Unlock()
	db := e.redis.DB(0)
	keys := db.Keys()
	entries = make([]snapshotEntry, 0, len(keys))
	for _, key := range keys {
		entry := snapshotEntry{Key: key, Type: db.Type(key)}
		if ttl := db.TTL(key); ttl > 0 {
			entry.ExpireAtMS = now.Add(ttl).UnixMilli()
		}
		switch entry.Type {
		case "string":
			entry.String, err = db.Get(key)
		case "set":
			entry.Set, err = db.Members(key)
		case "zset":
			entry.SortedSet, err = db.SortedSet(key)
			entry.SortedSet = maps.Clone(entry.SortedSet) // SortedSet returns the live map
		case "list":
			entry.List, err = db.List(key)
			entry.List = slices.Clone(entry.List)
		case "hash":
			var fields []string
			fields, err = db.HKeys(key)
			entry.Hash = make(map[string]string, len(fields))
			for _, f := range fields {
				entry.Hash[f] = db.HGet(key, f)
			}
		case "stream":
			entry.Stream, err = db.Stream(key)
			entry.Stream = slices.Clone(entry.Stream)
		case "": // expired since Keys
			continue
		default:
			err = fmt.Errorf("a %s cannot be stored", entry.Type)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("copy %s: %w", key, err)
		}
		entries = append(entries, entry)
	}
	previous := e.journal
	e.journal, err = previous.next(e.dir, now)
	if err != nil {
		e.journal = previous
		return nil, 0, err
	}
	if err := previous.file.Close(); err != nil {
		return nil, 0, fmt.Errorf("close journal: %w", err)
	}
	return entries, e.journal.number, nil
}

// encodeSnapshot writes a snapshot file to w.
func encodeSnapshot(w io.Writer, header snapshotHeader, entries []snapshotEntry) error {
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	buffered := bufio.NewWriterSize(w, 1<<20)
	body := io.MultiWriter(buffered, sum)
	if _, err := io.WriteString(body, snapshotMagic); err != nil {
		return err
	}
	enc := gob.NewEncoder(body)
	if err := enc.Encode(header); err != nil {
		return err
	}
	for i := range entries {
		if err := enc.Encode(&entries[i]); err != nil {
			return err
		}
	}
	if _, err := buffered.Write(sum.Sum(nil)); err != nil {
		return err
	}
	return buffered.Flush()
}

// decodeSnapshot parses a snapshot file. It verifies the checksum before it decodes anything.
func decodeSnapshot(raw []byte) (header snapshotHeader, entries []snapshotEntry, err error) {
	end := len(raw) - crc64.Size
	if end < len(snapshotMagic) || !bytes.HasPrefix(raw, []byte(snapshotMagic)) {
		return header, nil, errors.New("it is not a snapshot of this version")
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	sum.Write(raw[:end]) // a hash never fails
	if !bytes.Equal(sum.Sum(nil), raw[end:]) {
		return header, nil, errors.New("its checksum is wrong")
	}
	dec := gob.NewDecoder(bytes.NewReader(raw[len(snapshotMagic):end]))
	if err := dec.Decode(&header); err != nil {
		return header, nil, err
	}
	entries = make([]snapshotEntry, header.Entries)
	for i := range entries {
		if err := dec.Decode(&entries[i]); err != nil {
			return header, nil, err
		}
	}
	return header, entries, nil
}

// load restores the snapshot, if one exists, and the journals that follow it, and then
// starts a new journal. Time passes for the keys in between: they age from the snapshot to
// the last entry while the journals are replayed, and from there to the present at the end.
func (e *Server) load(srv *server.Server) error {
	header, entries, err := e.readSnapshot()
	if err != nil {
		return err
	}
	taken := time.UnixMilli(header.TakenAtMS)
	for _, entry := range entries {
		if err := e.restore(entry, taken); err != nil {
			return fmt.Errorf("load snapshot: %w", err)
		}
	}
	last, at, err := e.replayJournals(srv, header.Journal, taken)
	if err != nil {
		return err
	}
	now := time.Now()
	e.redis.FastForward(max(0, now.Sub(at)))
	e.journal.number = last
	e.journal, err = e.journal.next(e.dir, now)
	if err != nil {
		return err
	}
	e.dirty.Store(last > 0) // a snapshot soon makes the old journals superfluous
	return nil
}

// readSnapshot reads the snapshot. Where none exists, it returns no entries and the
// present time.
func (e *Server) readSnapshot() (header snapshotHeader, entries []snapshotEntry, err error) {
	path := filepath.Join(e.dir, snapshotFile)
	left, err := filepath.Glob(path + ".*")
	if err != nil {
		return header, nil, fmt.Errorf("look for snapshots: %w", err)
	}
	for _, name := range left { // left by a process that was killed while it wrote
		if err := os.Remove(name); err != nil {
			return header, nil, fmt.Errorf("remove an unfinished snapshot: %w", err)
		}
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return snapshotHeader{TakenAtMS: time.Now().UnixMilli()}, nil, nil
	}
	if err != nil {
		return header, nil, fmt.Errorf("read snapshot: %w", err)
	}
	header, entries, err = decodeSnapshot(raw)
	if err != nil {
		return header, nil, api.Wrap(api.CodeInternal, err,
			fmt.Sprintf("the snapshot %s cannot be read: restore it from a copy, or move it away to start empty", path))
	}
	return header, entries, nil
}

// restore restores a key in its state at the time of the snapshot, with the time to live that
// it had then.
func (e *Server) restore(entry snapshotEntry, taken time.Time) error {
	ttl := time.Duration(0)
	if entry.ExpireAtMS > 0 {
		ttl = time.UnixMilli(entry.ExpireAtMS).Sub(taken)
		if ttl <= 0 {
			return nil
		}
	}
	db := e.redis.DB(0)
	var err error
	switch entry.Type {
	case "string":
		err = db.Set(entry.Key, entry.String)
	case "set":
		_, err = db.SetAdd(entry.Key, entry.Set...)
	case "list":
		_, err = db.Push(entry.Key, entry.List...)
	case "zset":
		for member, score := range entry.SortedSet {
			_, err = db.ZAdd(entry.Key, score, member)
			if err != nil {
				break
			}
		}
	case "hash":
		for field, value := range entry.Hash {
			db.HSet(entry.Key, field, value)
		}
	case "stream":
		for _, e := range entry.Stream {
			_, err = db.XAdd(entry.Key, e.ID, e.Values)
			if err != nil {
				break
			}
		}
	default:
		err = fmt.Errorf("a %s cannot be loaded", entry.Type)
	}
	if err == nil && ttl > 0 {
		db.SetTTL(entry.Key, ttl)
	}
	return err
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
