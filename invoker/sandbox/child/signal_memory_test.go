package child

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/codesous/sous/invoker/sandbox/wire"
)

// TestSignalsKeepNoResponses: a signal that many requests share keeps none of their bodies. It
// measures the heap, so it does not run in parallel.
func TestSignalsKeepNoResponses(t *testing.T) {
	const requests, size, most = 32, 1 << 20, 8 << 20
	for name, options := range map[string]string{
		"whole body":    `{ signal }`,
		"streamed body": `{ signal, method: "POST", duplex: "half", body: new Blob(["a"]).stream() }`,
	} {
		p := inProcess(t)
		calls, before, after := 0, uint64(0), uint64(0)
		p.host = func(wire.HostCall) *wire.HostReply {
			calls++
			switch calls {
			case 1:
				before = liveBytes()
			case requests:
				after = liveBytes()
			}
			return &wire.HostReply{OK: true, Head: []byte(`{"status":200,"url":"http://a/","headers":[]}`), Blob: bytes.Repeat([]byte("x"), size)}
		}
		p.source(`export default async () => {
			const controller = new AbortController(), { signal } = controller;
			for (let i = 0; i < 32; i++) await (await fetch("http://a/", ` + options + `)).bytes();
			controller.abort();
			return true;
		}`).value("null")
		if calls != requests || after > before+most {
			t.Errorf("%s: got a heap of %d bytes before and %d after %d responses of %d bytes, want at most %d more", name, before, after, calls, size, most)
		}
	}
}

// liveBytes returns the size of the objects on the heap that are in use.
func liveBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
