package rest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/api"
)

// A message that has begun must arrive in the time of a body. A stream without a message may be silent.
func TestMessagesOfStreamsMustArriveInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := OpenDuplex(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("half of a message")), 1<<10)
		defer d.End()
		time.Sleep(2 * bodyTimeout)
		if err := d.Stalled(); err != nil {
			t.Errorf("before the first message: got %v, want no error", err)
		}
		if n, err := d.Read(make([]byte, 4)); n != 4 || err != nil {
			t.Fatalf("Read: got %d bytes and error %v, want 4", n, err)
		}
		time.Sleep(bodyTimeout - time.Millisecond)
		if err := d.Stalled(); err != nil {
			t.Errorf("a message within its time: got %v, want no error", err)
		}
		time.Sleep(time.Millisecond)
		if err := d.Stalled(); api.ErrorCode(err) != api.CodeRequestTimeout {
			t.Errorf("an unfinished message: got %v, want %s", err, api.CodeRequestTimeout)
		}
		d.Message()
		if err := d.Stalled(); err != nil {
			t.Errorf("after the message: got %v, want no error", err)
		}
	})
}

// unflushable is the writer of an answer whose client has gone.
type unflushable struct{ http.ResponseWriter }

var errGone = errors.New("gone")

func (unflushable) FlushError() error { return errGone }

// Libraries flush without looking at errors; the stream learns of the first one.
func TestDuplexRemembersFailedFlushes(t *testing.T) {
	t.Parallel()
	d, _ := OpenDuplex(unflushable{httptest.NewRecorder()}, httptest.NewRequest(http.MethodPost, "/", http.NoBody), 1<<10)
	defer d.End()
	if err := d.Flushed(); err != nil {
		t.Errorf("Flushed before a flush: got %v, want no error", err)
	}
	flusher, ok := d.Writer().(http.Flusher)
	if !ok {
		t.Fatal("Writer: got no http.Flusher, want one")
	}
	flusher.Flush()
	if err := d.Flushed(); !errors.Is(err, errGone) {
		t.Errorf("Flushed: got %v, want %v", err, errGone)
	}
}
