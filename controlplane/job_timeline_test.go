package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	jobevent "github.com/codesous/sous/api/event"
)

// A job has a timeline for those who ask for it, over HTTP and by the client.
func TestJobTimelinesOverHTTP(t *testing.T) {
	t.Parallel()
	h := start(t)
	id := h.add(t, "emails", `{"payload":1}`)
	h.take(t, "emails", 1)
	got := h.call(t, "GET", h.at("T/jobs/"+id), "")
	if plain := ok[jobevent.JobHistory](t, got, http.StatusOK); plain.Timeline != nil || len(plain.Attempts) != 1 || plain.Attempts[0].Host != "here" {
		t.Errorf("job: got %+v, want an attempt on the host here, and no timeline", plain)
	}
	h.call(t, "POST", h.at("T/jobs/"+id+":cancel"), "")
	c, err := client.New(h.URL, client.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	history, err := c.Tenant(h.tenant).JobHistory(t.Context(), id)
	if err != nil || history.ID != id || history.Timeline == nil {
		t.Fatalf("JobHistory: got %+v and error %v, want the job with its timeline", history, err)
	}
	var changes []string
	for _, e := range history.Timeline.Entries {
		changes = append(changes, fmt.Sprint(e.Source, " ", e.Type, " ", e.Host))
	}
	want := "record job.enqueued , record job.started here, log job.cancelled here"
	if got := strings.Join(changes, ", "); got != want || history.Timeline.Complete {
		t.Errorf("timeline: got %s, complete %t; want %s, not complete", got, history.Timeline.Complete, want)
	}
	if got := h.call(t, "GET", h.at("T/jobs/"+id+"?include=timeline,payload"), ""); got.status != http.StatusUnprocessableEntity && got.status != http.StatusBadRequest {
		t.Errorf("include=timeline,payload: got %d, want a refusal", got.status)
	}
	if got := h.call(t, "GET", h.at("T/jobs/"+api.NewJobID()+"?include=timeline"), ""); got.status != http.StatusNotFound {
		t.Errorf("timeline of a job that does not exist: got %d, want %d", got.status, http.StatusNotFound)
	}
}
