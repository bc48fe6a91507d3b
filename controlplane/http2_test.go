package controlplane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/codesous/sous/api"
)

// The bounds of an HTTP/2 connection, as the server announces them.
const (
	streams      = 64
	frameBytes   = 16 << 10
	receiveBytes = 256 << 10
)

// frames is an HTTP/2 connection whose client writes its frames by itself.
type frames struct {
	*http2.Framer
	t      *testing.T
	conn   net.Conn
	header []byte // of a GET of the function, encoded without the table
}

// dialFrames opens an HTTP/2 connection to a new server of h.
func dialFrames(t *testing.T, h *harness) *frames {
	t.Helper()
	overTLS(t, h)
	transport, _ := h.client.Transport.(*http.Transport)
	conf := transport.TLSClientConfig.Clone()
	conf.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", h.Listener.Addr().String(), conf)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatalf("SetDeadline: %v", err)
	}
	f := &frames{Framer: http2.NewFramer(conn, conn), t: t, conn: conn}
	_, err = io.WriteString(conn, http2.ClientPreface)
	if err := errors.Join(err, f.WriteSettings()); err != nil {
		t.Fatalf("begin: %v", err)
	}
	var header bytes.Buffer
	e := hpack.NewEncoder(&header)
	e.SetMaxDynamicTableSize(0)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "localhost"}, {Name: ":path", Value: h.web("/")},
	} {
		if err := e.WriteField(field); err != nil {
			t.Fatalf("WriteField: %v", err)
		}
	}
	f.header = header.Bytes()
	return f
}

// end reads until the server ends the connection, and returns the error code that it names. It
// is ErrCodeNo where the server closes the connection without one.
func (f *frames) end() http2.ErrCode {
	f.t.Helper()
	for {
		frame, err := f.ReadFrame()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return http2.ErrCodeNo
		}
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			f.t.Fatalf("ReadFrame: got error %v, want the server to end the connection", err)
		}
		if err != nil { // a reset by the peer
			return http2.ErrCodeNo
		}
		if away, ok := frame.(*http2.GoAwayFrame); ok {
			return away.ErrCode
		}
	}
}

// The server announces its bounds: they are what a connection can make it hold.
func TestHTTP2AnnouncesItsBounds(t *testing.T) {
	t.Parallel()
	f := dialFrames(t, start(t))
	got, window := map[http2.SettingID]uint32{}, uint32(65_535) // the protocol begins with it
	if err := f.WritePing(false, [8]byte{1}); err != nil {
		t.Fatalf("WritePing: %v", err)
	}
	for answered := false; !answered; {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("ReadFrame: %v", err)
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			_ = frame.ForeachSetting(func(s http2.Setting) error {
				got[s.ID] = s.Val
				return nil
			})
		case *http2.WindowUpdateFrame:
			window += frame.Increment
		case *http2.PingFrame:
			answered = true
		}
	}
	for id, want := range map[http2.SettingID]uint32{
		http2.SettingMaxConcurrentStreams: streams, http2.SettingInitialWindowSize: receiveBytes, http2.SettingMaxFrameSize: frameBytes,
	} {
		if got[id] != want {
			t.Errorf("%s = %d, want %d", id, got[id], want)
		}
	}
	if window != receiveBytes {
		t.Errorf("the window of the connection has %d bytes, want %d", window, receiveBytes)
	}
}

// A frame of HTTP/2 that is larger than others must accept is refused when its length arrives:
// no memory is reserved for its content.
func TestLargeFramesAreRefusedByTheirLength(t *testing.T) {
	t.Parallel()
	f := dialFrames(t, start(t))
	if _, err := f.conn.Write([]byte{0x0f, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0}); err != nil { // the header of 1 MiB
		t.Fatalf("Write: %v", err)
	}
	if got := f.end(); got != http2.ErrCodeFrameSize {
		t.Errorf("a frame of 1 MiB: got error code %s, want %s", got, http2.ErrCodeFrameSize)
	}
}

// Streams that are opened and reset at once do not run more calls than streams may be open: the
// next waits until a reset call has ended, and a connection with many that wait is ended.
func TestResetStreamsStayBounded(t *testing.T) {
	t.Parallel()
	h := start(t)
	var running, most atomic.Int64
	release := make(chan struct{})
	h.engine.invoke = func(context.Context, api.Invocation) (*api.Outcome, error) {
		now := running.Add(1)
		defer running.Add(-1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); {
			was = most.Load()
		}
		<-release // a call that does not notice the reset
		return success(""), nil
	}
	f := dialFrames(t, h)
	go func() {
		for id := uint32(1); id < 40_000; id += 2 {
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.header, EndStream: true, EndHeaders: true})
			if errors.Join(err, f.WriteRSTStream(id, http2.ErrCodeCancel)) != nil {
				return
			}
		}
	}()
	if got := f.end(); got != http2.ErrCodeEnhanceYourCalm {
		t.Errorf("20,000 reset streams: got error code %s, want %s", got, http2.ErrCodeEnhanceYourCalm)
	}
	close(release)
	if most.Load() > streams {
		t.Errorf("got %d calls at the same time, want at most %d", most.Load(), streams)
	}
}

// A header without an end is cut when it is too large.
func TestEndlessHeadersAreCut(t *testing.T) {
	t.Parallel()
	f := dialFrames(t, start(t))
	const most = 64 << 20 // more than the buffers of the connection take
	ended := make(chan int, 1)
	go func() {
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.header})
		var field bytes.Buffer
		e := hpack.NewEncoder(&field)
		e.SetMaxDynamicTableSize(0)
		err = errors.Join(err, e.WriteField(hpack.HeaderField{Name: "x-a", Value: string(bytes.Repeat([]byte("~"), 8000))}))
		sent := 0
		for ; err == nil && sent < most; sent += field.Len() {
			err = f.WriteContinuation(1, false, field.Bytes())
		}
		ended <- sent
	}()
	f.end()
	f.conn.Close()
	if sent := <-ended; sent >= most {
		t.Errorf("the server took a header of %d bytes, want it to end the connection before", sent)
	}
}

// A client that asks and does not read its answers loses the connection: the frames that wait for it
// are bounded.
func TestUnreadPingsEndTheConnection(t *testing.T) {
	t.Parallel()
	f := dialFrames(t, start(t))
	for n := 0; ; n++ {
		if err := f.WritePing(false, [8]byte{1}); err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("after %d pings: got error %v, want the server to close the connection", n, err)
			}
			return
		}
	}
}
