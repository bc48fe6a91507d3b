package examples

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// testCloudEvents sends events with the public SDK. The function must receive in each mode what
// was sent.
func testCloudEvents(t *testing.T, server *soustest.Server) {
	folder := installed(t, "cloudevents")
	url := deploy(t, server, folder)
	call{"POST", "", nil, `{"order":7}`, 400, `{"error":"send a CloudEvent"}`}.do(t, url)

	out, err := exec.CommandContext(t.Context(), "node", filepath.Join(folder, "send.js"), url).CombinedOutput()
	if err != nil {
		t.Fatalf("node send.js: got error %v, want none\n%s", err, out)
	}
	modes := map[string]int{}
	for line := range bytes.Lines(out) {
		var e struct {
			Mode   string
			Sent   map[string]any
			Answer struct {
				Received map[string]any
				Error    string
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("send.js printed %s: %v, want JSON", line, err)
		}
		modes[e.Mode]++
		// In binary mode, the header Content-Type is the attribute.
		if e.Mode == "binary" && e.Sent["datacontenttype"] == nil {
			e.Sent["datacontenttype"] = "application/json; charset=utf-8"
		}
		if diff := cmp.Diff(e.Sent, e.Answer.Received); diff != "" {
			t.Errorf("mode %s: event that the function received differs from the sent one (-want +got):\n%s%s", e.Mode, diff, e.Answer.Error)
		}
	}
	if want := map[string]int{"binary": 4, "structured": 4}; !cmp.Equal(modes, want) {
		t.Errorf("got events by mode %v, want %v", modes, want)
	}
}
