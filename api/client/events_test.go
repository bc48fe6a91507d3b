package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/event"
)

// sentEvent is the event n of a stream.
func sentEvent(n int) string {
	return fmt.Sprintf("id: %d-0.0\nevent: job.dead\ndata: {\"id\":\"%d-0.0\",\"type\":\"job.dead\",\"subject\":\"jobs/j%d\"}\n\n", n, n, n)
}

var selection = client.EventSelection{
	Filter: event.Filter{Types: []string{"job.dead", "job.c*"}, Namespace: "shop", Queue: "mail", Function: "hello"},
	Since:  time.UnixMilli(1_760_000_000_000),
}

func TestEventRequests(t *testing.T) {
	t.Parallel()
	c, all := serve(t, 200, `{"items":[{"id":"1-0.0","type":"job.dead","data":{"queue":"mail","attempt":2}}],"next_cursor":"n","gap":true}`)
	page, err := c.Tenant("t_default").Events(t.Context(), selection, client.PageOptions{Limit: 3, Cursor: "a"})
	next := "n"
	want := event.Page{Items: []event.Event{{ID: "1-0.0", Type: event.JobDead, Data: event.Data{Queue: "mail", Attempt: 2}}}, NextCursor: &next, Gap: true}
	if diff := cmp.Diff(want, page); err != nil || diff != "" {
		t.Errorf("Events: got error %v, want none (-want +got):\n%s", err, diff)
	}
	if _, err := c.Tenant("t_default").Events(t.Context(), client.EventSelection{}, client.PageOptions{}); err != nil {
		t.Errorf("Events: %v", err)
	}
	got := []string{}
	for _, s := range *all {
		got = append(got, s.Method+" "+s.URI)
	}
	uris := []string{
		"GET /v1/tenants/t_default/events?cursor=a&function=hello&limit=3&namespace=shop&queue=mail&since=1760000000000&types=job.dead%2Cjob.c%2A",
		"GET /v1/tenants/t_default/events",
	}
	if diff := cmp.Diff(uris, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The iteration ends behind the last event that there was, not at an empty page.
func TestAllEventsEnd(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"items":[{"id":"1-0.0"}],"next_cursor":"a","more":true}`,
		"a": `{"items":[],"next_cursor":"b","more":true}`,
		"b": `{"items":[{"id":"2-0.0"}],"next_cursor":"c"}`,
		"c": `{"items":[{"id":"3-0.0"}],"next_cursor":"d","more":true}`, // of a later time
	}
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	var got []string
	for e, err := range c.Tenant("t_default").AllEvents(t.Context(), client.EventSelection{}) {
		if err != nil {
			t.Fatalf("AllEvents: %v", err)
		}
		got = append(got, e.ID)
	}
	if want := []string{"1-0.0", "2-0.0"}; !cmp.Equal(got, want) {
		t.Errorf("AllEvents: got %q, want %q", got, want)
	}
}

func TestFollowEvents(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	const gap, begin = "event: gap\ndata: {}\n\n", "id: 0-5.0\n\n"
	tests := map[string]struct {
		parts   []string
		want    []string
		lastIDs []string
	}{
		"events":                   {[]string{": following\n\n" + begin + sentEvent(1) + sentEvent(2)}, []string{"j1", "j2"}, []string{""}},
		"reconnects behind one":    {[]string{begin + sentEvent(1) + sentEvent(2)[:20], "503", sentEvent(2)}, []string{"j1", "j2"}, []string{"", "1-0.0", "1-0.0"}},
		"reconnects at the begin":  {[]string{begin, sentEvent(1) + sentEvent(2)}, []string{"j1", "j2"}, []string{"", "0-5.0"}},
		"reconnects at a position": {[]string{begin + sentEvent(1) + "id: 7-0.0\n\n", sentEvent(2)}, []string{"j1", "j2"}, []string{"", "7-0.0"}},
		"a gap":                    {[]string{gap + sentEvent(1) + sentEvent(2)}, []string{"gap", "j1", "j2"}, []string{""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler, lastIDs := stream(tt.parts...)
			uri := ""
			c := start(t, func(w http.ResponseWriter, r *http.Request) {
				uri = r.RequestURI
				handler(w, r)
			})
			var got []string
			err := c.Tenant("t_default").FollowEvents(t.Context(), selection, func(e event.Event) error {
				got = append(got, strings.TrimPrefix(e.Subject, "jobs/"))
				if e.Subject == "jobs/j2" {
					return enough
				}
				return nil
			}, func() error {
				got = append(got, "gap")
				return nil
			})
			if !errors.Is(err, enough) {
				t.Errorf("FollowEvents: got error %v, want that of handle", err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.lastIDs, *lastIDs); diff != "" {
				t.Errorf("Last-Event-IDs (-want +got):\n%s", diff)
			}
			const want = "/v1/tenants/t_default/events:follow?function=hello&namespace=shop&queue=mail&since=1760000000000&types=job.dead%2Cjob.c%2A"
			if uri != want {
				t.Errorf("request: got %s, want %s", uri, want)
			}
		})
	}
}
