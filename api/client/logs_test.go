package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
)

// line is one log line as an event with id n.
func line(n int) string {
	return fmt.Sprintf("id: %d\nevent: log\ndata: {\"ts_ms\":%d,\"level\":\"info\",\"message\":\"m%d\",\"attempt\":1}\n\n", n, n, n)
}

// stream answers the nth connection with parts[n]; a last part is repeated.
func stream(parts ...string) (http.HandlerFunc, *[]string) {
	var n atomic.Int32
	lastIDs := &[]string{}
	return func(w http.ResponseWriter, r *http.Request) {
		*lastIDs = append(*lastIDs, r.Header.Get("Last-Event-ID"))
		part := parts[min(int(n.Add(1))-1, len(parts)-1)]
		if part == "503" {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, part)
	}, lastIDs
}

func TestFollowLogs(t *testing.T) {
	t.Parallel()
	const end = "event: end\ndata: {}\n\n"
	tests := map[string]struct {
		parts   []string
		want    []int64
		lastIDs []string
		wantErr bool
	}{
		"to the end":             {[]string{": hi\n\n" + line(1) + line(2) + end}, []int64{1, 2}, []string{""}, false},
		"with CR LF":             {[]string{strings.ReplaceAll(line(1)+end, "\n", "\r\n")}, []int64{1}, []string{""}, false},
		"reconnects where broke": {[]string{line(1) + line(2), line(3)[:9], "503", line(3) + end}, []int64{1, 2, 3}, []string{"", "2", "2", "2"}, false},
		"reconnects in vain":     {[]string{line(1), ""}, []int64{1}, []string{"", "1", "1", "1"}, true},
		"other events":           {[]string{"event: other\ndata: x\n\n" + line(1) + end}, []int64{1}, []string{""}, false},
		"a line that is no JSON": {[]string{"data: nope\n\n"}, nil, []string{""}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, lastIDs := stream(tt.parts...)
			c := start(t, handler)
			var got []int64
			err := c.Tenant("t_default").FollowLogs(t.Context(), "id1", func(l api.LogLine) error {
				got = append(got, l.TSMS)
				return nil
			})
			if (err != nil) != tt.wantErr {
				t.Errorf("error %v, want one: %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.lastIDs, *lastIDs); diff != "" {
				t.Errorf("Last-Event-IDs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowLogsStopsOnHandlersError(t *testing.T) {
	t.Parallel()
	handler, _ := stream(line(1) + line(2))
	c := start(t, handler)
	enough := errors.New("enough")
	calls := 0
	err := c.Tenant("t_default").FollowLogs(t.Context(), "id1", func(api.LogLine) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("FollowLogs: got error %v after %d lines, want the handler's error after 1", err, calls)
	}
}

func TestFollowLogsOfUnknownActivation(t *testing.T) {
	t.Parallel()
	c, all := serve(t, 404, `{"code":"CS_ACTIVATION_NOT_FOUND","detail":"no"}`)
	err := c.Tenant("t_default").FollowLogs(t.Context(), "id1", func(api.LogLine) error { return nil })
	if api.ErrorCode(err) != api.CodeActivationNotFound || len(*all) != 1 {
		t.Errorf("FollowLogs: got error %v after %d requests, want CodeActivationNotFound after 1", err, len(*all))
	}
}

func TestLogLinesOfRunningActivationEnd(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	c := start(t, func(w http.ResponseWriter, _ *http.Request) {
		// A running activation's log has a next page for ever.
		if asked.Add(1) == 1 {
			_, _ = io.WriteString(w, `{"items":[{"ts_ms":1}],"next_cursor":"1"}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[],"next_cursor":"1"}`)
	})
	lines := 0
	for _, err := range c.Tenant("t_default").LogLines(t.Context(), "id1") {
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		lines++
	}
	if lines != 1 || asked.Load() != 2 {
		t.Errorf("%d lines in %d requests, want 1 in 2", lines, asked.Load())
	}
}
