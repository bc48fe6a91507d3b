package invoker_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// Two replicas may get the same call in the same millisecond: one of them runs it.
func TestIdempotentCallsOfOneMomentRunOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newBench(t, storagetest.Open(t, storage.Config{
		URL: storagetest.Redis(t).URL, Clock: func() time.Time { return now },
	}))
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("slow", `export default () => new Promise((r) => setTimeout(r, 200));`, config)
	var ran atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			inv := b.invocation("slow", "1")
			inv.IdempotencyKey = "k"
			out, err := b.engine.Invoke(t.Context(), inv)
			switch {
			case err == nil && !out.Replayed:
				ran.Add(1)
			case err != nil && api.ErrorCode(err) != api.CodeIdempotencyRunning:
				t.Errorf("Invoke: %v, want no error or code %s", err, api.CodeIdempotencyRunning)
			}
		})
	}
	wg.Wait()
	if ran.Load() != 1 {
		t.Errorf("%d of the calls ran, want 1", ran.Load())
	}
}

// A call whose first write got no answer has run nothing: its key is good for
// another try as soon as the store answers.
func TestIdempotentCallAfterAnUnknownStart(t *testing.T) {
	t.Parallel()
	store := storagetest.Redis(t)
	proxy := newDeafProxy(t, fmt.Sprintf("127.0.0.1:%d", store.Port), []byte(`"status":"running"`))
	b := newBench(t, storagetest.Open(t, storage.Config{URL: "redis://" + proxy.addr}))
	config := defaults()
	config.TimeoutMS = 60_000
	b.publish("once", `export default () => "ran";`, config)
	inv := b.invocation("once", "1")
	inv.IdempotencyKey = "k"

	proxy.mode.Store(deaf)
	if _, err := b.engine.Invoke(t.Context(), inv); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Fatalf("Invoke without an answer of the store: got error %v, want code %s", err, api.CodeStoreUnavailable)
	}
	if items := b.list("once"); len(items) != 1 || items[0].Status != api.StatusRunning {
		t.Fatalf("got activations %+v, want one that is running", items)
	}
	proxy.mode.Store(passing)
	b.eventually("the key is good again", func() bool {
		out, err := b.engine.Invoke(t.Context(), inv)
		if err != nil && api.ErrorCode(err) != api.CodeIdempotencyRunning {
			t.Fatalf("Invoke: got error %v, want none or code %s", err, api.CodeIdempotencyRunning)
		}
		return err == nil && !out.Replayed && out.Activation.Status == api.StatusSuccess
	})
	if items := b.list("once"); len(items) != 1 {
		t.Errorf("%d activations are listed, want 1", len(items))
	}
}

// An activation whose running record did not arrive is recorded whole once the store
// is back.
func TestStartIsWrittenAfterAnOutage(t *testing.T) {
	t.Parallel()
	store := storagetest.Redis(t)
	proxy := newDeafProxy(t, fmt.Sprintf("127.0.0.1:%d", store.Port), []byte(`"status":"running"`))
	b := newBench(t, storagetest.Open(t, storage.Config{URL: "redis://" + proxy.addr}))
	b.publish("once", `export default () => new Promise((r) => setTimeout(() => r("ran"), 100));`, defaults())
	proxy.mode.Store(refusing)
	if out, err := b.engine.Invoke(t.Context(), b.invocation("once", "1")); api.ErrorCode(err) != api.CodeStoreUnavailable {
		t.Fatalf("without a running record: got %+v, %v; want %s", out, err, api.CodeStoreUnavailable)
	}
	proxy.mode.Store(passing)
	b.eventually("it is recorded", func() bool {
		items := b.list("once")
		return len(items) == 1 && items[0].Status == api.StatusSuccess
	})
}

// deafProxy passes everything on to a server, but in other modes what contains a mark.
type deafProxy struct {
	addr string
	mode atomic.Int32
}

const (
	passing  = iota
	deaf     // the connection closes in place of the answer
	refusing // the connection closes, and the server hears nothing
)

func newDeafProxy(t *testing.T, server string, mark []byte) *deafProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	p := &deafProxy{addr: listener.Addr().String()}
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.serve(t, client, server, mark) })
		}
	})
	return p
}

func (p *deafProxy) serve(t *testing.T, client net.Conn, server string, mark []byte) {
	t.Helper()
	defer func() { _ = client.Close() }()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		t.Errorf("net.Dial: %v", err)
		return
	}
	var mute atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer func() { _ = client.Close() }()
		buf := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buf)
			if err != nil || mute.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if mode := p.mode.Load(); mode != passing && bytes.Contains(buf[:n], mark) {
			mute.Store(true)
			if mode == refusing {
				break
			}
		}
		if _, werr := upstream.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	_ = upstream.Close()
	back.Wait()
}
