package cadenceworker

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/cadence/.gen/go/shared"
	"go.uber.org/yarpc/yarpcerrors"
)

// listen is an address where connections are made and nothing is answered.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func dial(t *testing.T, addr string) *Conn {
	t.Helper()
	conn, err := Dial(addr)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func describe(ctx context.Context, conn *Conn) error {
	name := "anything"
	_, err := conn.Service.DescribeDomain(ctx, &shared.DescribeDomainRequest{Name: &name})
	return err
}

func TestDialRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", "localhost", "http://localhost:7833/"} {
		if _, err := Dial(addr); err == nil {
			t.Errorf("Dial(%q) succeeded, want an error", addr)
		}
	}
}

func TestCallsFailAtOnceWithoutAServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("net.Listen: %v", err)
	}
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := describe(ctx, dial(t, l.Addr().String())); !yarpcerrors.IsUnavailable(err) {
		t.Errorf("call without a server: got error %v, want unavailable", err)
	}
}

func TestCloseWaitsForCalls(t *testing.T) {
	t.Parallel()
	conn := dial(t, listen(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // no call goes out without a deadline
	defer cancel()
	called := make(chan error, 1)
	go func() { called <- describe(ctx, conn) }()
	for conn.link.underWay() == 0 {
		select {
		case err := <-called:
			t.Fatalf("call: got an end with error %v, want it to wait", err)
		case <-time.After(time.Millisecond):
		}
	}
	soon, stopSoon := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stopSoon()
	if err := conn.link.drain(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drain during a call: got error %v, want %v", err, context.DeadlineExceeded)
	}
	closed := make(chan error, 1)
	go func() { closed <- conn.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Errorf("Close during a call: got an end with error %v, want it to wait", err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	if err := <-called; err == nil {
		t.Error("cancelled call succeeded, want an error")
	}
	if err := <-closed; err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	after, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := describe(after, conn); !yarpcerrors.IsUnavailable(err) {
		t.Errorf("call on a closed connection: got error %v, want unavailable", err)
	}
}

func (l *link) underWay() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func TestALinkStartsOverWhenTheServerIsAwayForLong(t *testing.T) {
	t.Parallel()
	away, late, cancelled := yarpcerrors.UnavailableErrorf("away"), yarpcerrors.DeadlineExceededErrorf("late"), yarpcerrors.CancelledErrorf("cancelled")
	refused := yarpcerrors.InvalidArgumentErrorf("refused")
	type call struct {
		at  time.Duration
		err error
	}
	tests := map[string]struct {
		calls []call
		want  bool // another connection
	}{
		"a failure":                   {[]call{{0, away}}, false},
		"failures for a while":        {[]call{{0, away}, {renewAfter - 1, away}}, false},
		"failures for long":           {[]call{{0, away}, {renewAfter, away}}, true},
		"an answer between them":      {[]call{{0, away}, {1, nil}, {renewAfter, away}}, false},
		"a refusal between them":      {[]call{{0, away}, {1, refused}, {renewAfter, away}}, false},
		"a late call between them":    {[]call{{0, away}, {1, late}, {renewAfter, away}}, true},
		"a cancelled call between":    {[]call{{0, away}, {1, cancelled}, {renewAfter, away}}, true},
		"late calls only":             {[]call{{0, late}, {renewAfter, late}}, false},
		"answers only":                {[]call{{0, nil}, {renewAfter, nil}}, false},
		"a failure long after answer": {[]call{{0, nil}, {renewAfter, away}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &link{addr: listen(t)}
			if err := l.Start(); err != nil {
				t.Fatalf("Start: %v", err)
			}
			t.Cleanup(func() { l.Stop() })
			before, now := l.current, time.Now()
			for _, call := range test.calls {
				if err := l.note(before, call.err, now.Add(call.at)); err != nil {
					t.Fatalf("note: %v", err)
				}
			}
			if got := l.current != before; got != test.want {
				t.Fatalf("another connection: %v, want %v", got, test.want)
			}
			if !test.want {
				return
			}
			after := l.current
			if err := l.note(before, away, now.Add(time.Hour)); err != nil || l.current != after {
				t.Errorf("a call that began on the connection before replaces the one in its place: %v", err)
			}
			if before.outbound.IsRunning() || !after.outbound.IsRunning() {
				t.Error("the connection before runs, or the one in its place does not")
			}
		})
	}
}
