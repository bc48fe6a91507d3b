package cadenceworker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// However many ask, and whatever the limit becomes, no more than it says get in.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := newSlots()
	p.resize(3)
	var in, most atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if err := p.acquire(t.Context()); err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				if n := in.Add(1); n > most.Load() {
					most.Store(n)
				}
				in.Add(-1)
				p.release()
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("got %d holders of a slot at a time, want at most 3", most.Load())
	}
}

// A lower limit leaves the slots that are held, and grants none until fewer than the
// limit are held. A higher limit applies immediately.
func TestPlacesAreResized(t *testing.T) {
	t.Parallel()
	p := newSlots()
	p.resize(2)
	for range 2 {
		if err := p.acquire(t.Context()); err != nil {
			t.Fatalf("acquire: %v", err)
		}
	}
	p.resize(1)
	p.release() // one is still in: the limit is kept, and full
	brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.acquire(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire over the limit: got error %v, want %v", err, context.DeadlineExceeded)
	}
	got := make(chan error, 1)
	go func() { got <- p.acquire(t.Context()) }()
	p.resize(2)
	if err := <-got; err != nil {
		t.Errorf("unexpected error: %v", err)
	}
}

// What has a place when the limit becomes lower begins only as the new limit allows,
// and what has begun stays.
func TestPlacesBeginUnderTheLimitOfThatMoment(t *testing.T) {
	t.Parallel()
	p := newSlots()
	p.resize(3)
	for range 3 {
		if err := p.acquire(t.Context()); err != nil {
			t.Fatalf("acquire: %v", err)
		}
	}
	if err := p.begin(t.Context()); err != nil {
		t.Fatalf("begin: %v", err)
	}
	p.resize(1)
	brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.begin(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("begin under a limit of 1 with one begun: got error %v, want %v", err, context.DeadlineExceeded)
	}
	p.release() // the one that gave up
	got := make(chan error, 1)
	go func() { got <- p.begin(t.Context()) }()
	p.end()
	p.release()
	if err := <-got; err != nil {
		t.Errorf("unexpected error: %v", err)
	}
}
