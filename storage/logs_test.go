package storage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/activations"
	"github.com/codesous/sous/storage/storagetest"
)

func ndjson(t *testing.T, from, to int) []byte {
	t.Helper()
	var b strings.Builder
	for i := from; i < to; i++ {
		raw, err := json.Marshal(api.LogLine{TSMS: int64(i), Level: "info", Message: json.RawMessage(fmt.Sprintf("%q", fmt.Sprint(i))), Attempt: 1})
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
		b.Write(append(raw, '\n'))
	}
	return []byte(b.String())
}

func TestLogsArePagedAndFollowed(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		logs, tenant, id, ctx := activations.NewLogs(s), storagetest.Tenant(t), uuid.NewString(), t.Context()
		a := &activations.Record{Activation: api.Activation{Tenant: tenant, ActivationID: id}}
		var cursor activations.LogCursor
		var got []int64
		read := func(limit int) {
			t.Helper()
			lines, next, err := logs.Read(ctx, tenant, id, cursor, limit)
			if err != nil {
				t.Fatalf("logs.Read: %v", err)
			}
			if len(lines) > limit {
				t.Errorf("Read: got %d lines, want at most %d", len(lines), limit)
			}
			for _, l := range lines {
				got = append(got, l.TSMS)
			}
			if len(lines) > 0 && lines[len(lines)-1].Cursor != next {
				t.Errorf("Read: got next cursor %v, want that of the last line, %v", next, lines[len(lines)-1].Cursor)
			}
			cursor, err = activations.ParseLogCursor(next.String())
			if err != nil {
				t.Fatalf("activations.ParseLogCursor: %v", err)
			}
		}
		read(10) // nothing there yet
		// Chunk 0 grows between reads; 12 chunks are more than one read takes at once.
		if err := logs.Append(ctx, a, 0, ndjson(t, 0, 2)); err != nil {
			t.Fatalf("logs.Append: %v", err)
		}
		read(10)
		for chunk := range 12 {
			if err := logs.Append(ctx, a, chunk, ndjson(t, chunk*5, chunk*5+5)); err != nil {
				t.Fatalf("logs.Append: %v", err)
			}
		}
		for range 4 {
			read(7)
		}
		read(500)
		read(500)
		want := make([]int64, 60)
		for i := range want {
			want[i] = int64(i)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("difference (-want +got):\n%s", d)
		}
		if err := logs.Append(ctx, a, 12, make([]byte, api.LogChunkBytes+1)); err == nil {
			t.Error("a chunk over the limit was stored")
		}
	})
}

func TestLogCursors(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"x", "1", "1:", "1:x", "-1:0", "0:-1"} {
		if _, err := activations.ParseLogCursor(bad); api.ErrorCode(err) != api.CodeValidationCursor {
			t.Errorf("activations.ParseLogCursor: got %q: %v; want CodeValidationCursor", bad, err)
		}
	}
}
