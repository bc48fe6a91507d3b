package activations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

// Logs keeps the log lines of activations, in chunks, as long as the records. A chunk is a
// string of NDJSON, and a sorted set has the numbers of the chunks; docs/storage.md lists
// both keys. Numbers may have gaps: each attempt of an asynchronous activation begins at a
// number of its own. Lines are not checked against the record; a log can exist without one.
type Logs struct{ s *storage.Store }

// NewLogs returns the logs in s.
func NewLogs(s *storage.Store) *Logs { return &Logs{s} }

// LogCursor is a position in an activation's log: the next line to read. The zero value is
// the start. 2:14 is line 14, counted from 0, of chunk 2. It stays valid while the log grows,
// because written lines keep their chunk and their number.
type LogCursor struct {
	Chunk int
	Line  int // counted from 0 in its chunk
}

// String is "chunk:line", as ParseLogCursor reads it.
func (c LogCursor) String() string { return strconv.Itoa(c.Chunk) + ":" + strconv.Itoa(c.Line) }

// ParseLogCursor reads what LogCursor.String wrote; "" is the start.
// CodeValidationCursor.
func ParseLogCursor(s string) (LogCursor, error) {
	if s == "" {
		return LogCursor{}, nil
	}
	chunk, line, _ := strings.Cut(s, ":")
	var c LogCursor
	var err error
	c.Chunk, err = strconv.Atoi(chunk)
	if err == nil {
		c.Line, err = strconv.Atoi(line)
	}
	if err != nil || c.Chunk < 0 || c.Line < 0 {
		return LogCursor{}, api.Errorf(api.CodeValidationCursor, "not a log cursor: %q", s)
	}
	return c, nil
}

// LogEntry is a line of a log with the cursor after it.
type LogEntry struct {
	api.LogLine
	Cursor LogCursor
}

// Append stores a chunk of lines: NDJSON of api.LogLine, each line ended by a newline, at
// most api.LogChunkBytes. Chunks count from 0. Writing a chunk again replaces it, which is
// how a chunk grows; lines that were written must stay.
//
// The chunk expires after the retention of a, which counts from this write. That of an
// asynchronous activation may wait for further attempts: it lives for api.ActivationTTLMS at
// least, as the record does, until Keep sets its time.
func (r *Logs) Append(ctx context.Context, a *Record, chunk int, ndjson []byte) error {
	if err := checkChunk(ndjson); err != nil {
		return err
	}
	ms := r.s.ActivationRetentionMS(a.Tenant, a.RetentionMS)
	if a.JobID != "" {
		ms = max(ms, api.ActivationTTLMS)
	}
	index := r.s.Keys().LogChunks(a.Tenant, a.ActivationID)
	pipe := r.s.Client().Pipeline()
	queueChunk(ctx, pipe, r.s.Keys().LogChunk(a.Tenant, a.ActivationID, chunk), index, chunk, ndjson, time.Duration(ms)*time.Millisecond)
	_, err := pipe.Exec(ctx)
	return storage.Failure(ctx, "write log", err)
}

// Keep lets all chunks of an asynchronous activation live as long as a, the record that is
// written next. Without it, the chunks of an early attempt would expire before the record, and
// those of a version with a short retention after it. It does nothing where Append has set the
// same time: at the end of a first lease with a long retention.
func (r *Logs) Keep(ctx context.Context, a *Record) error {
	keep := keepOf(r.s, a)
	if a.JobID == "" || a.LeaseEpoch <= 1 && a.AsleepUntilMS == 0 && keep >= api.ActivationTTLMS*time.Millisecond {
		return nil
	}
	index := r.s.Keys().LogChunks(a.Tenant, a.ActivationID)
	numbers, err := r.s.Client().ZRange(ctx, index, 0, -1).Result()
	if err != nil || len(numbers) == 0 {
		return storage.Failure(ctx, "read log", err)
	}
	pipe := r.s.Client().Pipeline()
	for _, number := range numbers {
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("read log index: %w", err)
		}
		pipe.PExpire(ctx, r.s.Keys().LogChunk(a.Tenant, a.ActivationID, n), keep)
	}
	pipe.PExpire(ctx, index, keep)
	_, err = pipe.Exec(ctx)
	return storage.Failure(ctx, "keep log", err)
}

func checkChunk(ndjson []byte) error {
	if len(ndjson) > api.LogChunkBytes {
		return api.Errorf(api.CodeInternal, "a log chunk has %d bytes, more than %d", len(ndjson), api.LogChunkBytes)
	}
	return nil
}

// queueChunk adds the writes of one chunk, number n, to a pipeline. The chunk comes before its
// number, so that a reader never finds a number without lines; a crash in between leaves a
// chunk that expires unread. It returns the commands, which must succeed before the record
// that makes the log visible.
func queueChunk(ctx context.Context, pipe redis.Pipeliner, key, index string, n int, ndjson []byte, keep time.Duration) []redis.Cmder {
	return []redis.Cmder{
		pipe.Set(ctx, key, ndjson, keep),
		pipe.ZAdd(ctx, index, redis.Z{Score: float64(n), Member: n}),
		pipe.PExpire(ctx, index, keep),
	}
}

// logChunksAtOnce is the number of chunks that one read of a log holds in memory.
const logChunksAtOnce = 8

// Read returns up to limit lines, from cursor on; a limit of 0 is api.DefaultPageLimit. next is
// the cursor after the last line, where later lines will appear: a reader follows a log by
// calling Read with it until the activation has ended and no line is returned. A missing log
// has no lines. CodeStoreUnavailable.
func (r *Logs) Read(ctx context.Context, tenant, id string, cursor LogCursor, limit int) (lines []LogEntry, next LogCursor, err error) {
	limit = storage.PageLimit(limit)
	next = cursor
	for from := strconv.Itoa(cursor.Chunk); ; from = "(" + strconv.Itoa(next.Chunk) {
		numbers, err := r.s.Client().ZRangeByScore(ctx, r.s.Keys().LogChunks(tenant, id),
			&redis.ZRangeBy{Min: from, Max: "+inf", Count: logChunksAtOnce}).Result()
		if err != nil {
			return nil, cursor, storage.Failure(ctx, "read log", err)
		}
		chunks, err := r.chunks(ctx, tenant, id, numbers)
		if err != nil {
			return nil, cursor, err
		}
		for _, c := range chunks {
			if c.number != next.Chunk {
				next = LogCursor{Chunk: c.number}
			}
			entries, err := c.entries(next.Line, limit-len(lines))
			if err != nil {
				return nil, cursor, err
			}
			lines = append(lines, entries...)
			next.Line += len(entries)
			if len(lines) == limit {
				return lines, next, nil
			}
		}
		if len(numbers) < logChunksAtOnce {
			return lines, next, nil
		}
	}
}

type logChunk struct {
	number int
	ndjson string
}

func (r *Logs) chunks(ctx context.Context, tenant, id string, numbers []string) ([]logChunk, error) {
	chunks := make([]logChunk, len(numbers))
	keys := make([]string, len(numbers))
	for i, number := range numbers {
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("read log index: %w", err)
		}
		chunks[i].number = n
		keys[i] = r.s.Keys().LogChunk(tenant, id, n)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, storage.Failure(ctx, "read log", err)
	}
	for i, raw := range raws {
		chunks[i].ndjson = raw
	}
	return chunks, nil
}

// entries decodes up to limit lines of the chunk from line skip on.
func (c logChunk) entries(skip, limit int) ([]LogEntry, error) {
	var entries []LogEntry
	line := 0
	for raw := range bytes.Lines([]byte(c.ndjson)) {
		if len(entries) == limit {
			break
		}
		line++
		if line <= skip {
			continue
		}
		e := LogEntry{Cursor: LogCursor{Chunk: c.number, Line: line}}
		if err := json.Unmarshal(raw, &e.LogLine); err != nil {
			return nil, fmt.Errorf("decode log line: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
