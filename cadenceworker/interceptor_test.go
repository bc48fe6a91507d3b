package cadenceworker

import (
	"fmt"
	"testing"

	"go.uber.org/cadence/.gen/go/shared"
)

// Nothing is kept of a type once its task has begun: what workflows ask for would
// fill the memory.
func TestGateForgetsTypes(t *testing.T) {
	t.Parallel()
	s := &Supervisor{}
	s.metrics = newSupervisorMetrics(s)
	g := &interceptor{w: &activityWorker{b: &binding{s: s}}, deliveries: map[string]*delivery{}, drained: make(chan struct{})}
	for i := range 3 {
		kind := fmt.Sprint("type ", i)
		for range 2 { // delivered twice
			task := &shared.PollForActivityTaskResponse{TaskToken: []byte{byte(i)}, ActivityType: &shared.ActivityType{Name: &kind}}
			g.pass(task)
			if got := task.GetActivityType().GetName(); got != anyActivity {
				t.Errorf("got activity type %q for the client, want %q", got, anyActivity)
			}
		}
		for range 2 {
			if got := g.begun([]byte{byte(i)}).kind; got != kind {
				t.Errorf("begun: got activity type %q, want %q", got, kind)
			}
		}
	}
	if n := len(g.deliveries); n != 0 {
		t.Errorf("got %d deliveries at the end, want none", n)
	}
}
