package sandbox

import (
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

func TestRunAnswers(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	prog := program(t, "hello", `export default (e) => ({ hello: e.name })`)
	s := acquire(t, p, prog)
	if !s.Cold() {
		t.Error("the first acquisition is not cold")
	}
	r := s.Run(t.Context(), call(`{"name":"you"}`, time.Second))
	p.Release(s)
	if r.Status != api.StatusSuccess || string(r.Value) != `{"hello":"you"}` {
		t.Fatalf("got %+v with %s, want {\"hello\":\"you\"}", r, r.Value)
	}
	again := acquire(t, p, prog)
	if again != s || again.Cold() {
		t.Error("the second acquisition is not the warm sandbox")
	}
	p.Release(again)
}
