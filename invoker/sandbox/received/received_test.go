package received

import (
	"testing"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestBounds: frames count at least frameCost, logs and streams by their own bounds.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind   wire.Kind
		size   int
		frames int64 // that are allowed
	}{
		"small logs":       {wire.KindLog, 1, maxLogReceived / logCost},
		"large logs":       {wire.KindLog, 1 << 20, maxLogReceived >> 20},
		"small host calls": {wire.KindHostCall, 20, maxReceived / frameCost},
		"large host calls": {wire.KindHostCall, 4 << 20, maxReceived / (4 << 20)},
		"signals":          {wire.KindAbandon, 4, maxReceived / signalCost},
		"small chunks":     {wire.KindChunk, 1, 2 * api.MaxStreamBytes / frameCost},
	} {
		var r Count
		var err error
		n := int64(0)
		for ; err == nil; n++ {
			err = r.Add(c.kind, c.size)
		}
		if n-1 != c.frames {
			t.Errorf("%s: got %d frames allowed, want %d", name, n-1, c.frames)
		}
	}
}
