package feeds_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codesous/sous/controlplane/feeds"
)

// thing is a log of numbers: the position behind a number is the number.
type thing struct {
	mu    sync.Mutex
	last  int
	lost  int // numbers up to it are not kept
	page  int
	reads atomic.Int64
	fails error
}

func (l *thing) add(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last += n
}

func (l *thing) read(_ context.Context, from int) (feeds.Batch[int, int, bool], error) {
	l.reads.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := feeds.Batch[int, int, bool]{Next: from}
	if from < l.lost {
		batch.Gap, batch.Next = true, l.lost
	}
	for batch.Next < l.last && len(batch.Items) < l.page {
		batch.Next++
		batch.Items = append(batch.Items, batch.Next)
	}
	batch.More = len(batch.Items) == l.page
	return batch, l.fails
}

const interval = 200 * time.Millisecond

func newHub() *feeds.Hub[int, int, bool] {
	return feeds.New[int, int, bool](feeds.Config[int, int]{
		Interval: interval,
		Position: func(n *int) int { return *n },
		Size:     func(*int) int { return 8 },
	})
}

// follow reads until it has seen the number until, and returns the numbers.
func follow(t *testing.T, topic *feeds.Topic[int, int, bool], from, until int) []int {
	var seen []int
	for from < until {
		batch, err := topic.Next(t.Context(), from)
		if err != nil {
			t.Errorf("Next: %v", err)
			return seen
		}
		seen = append(seen, batch.Items...)
		from = batch.Next
	}
	return seen
}

func upTo(first, last int) []int {
	var out []int
	for n := first; n <= last; n++ {
		out = append(out, n)
	}
	return out
}

// Five hundred followers, which begin at different times and places, cost the reads of one.
func TestFollowersShareReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		const followers, numbers = 500, 200
		var wg sync.WaitGroup
		for i := range followers {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				topic := hub.Follow(t.Context(), "t_a", "log", log.read)
				defer topic.Leave()
				from := 0
				if i%2 == 1 {
					from = min(i/10, 3) // resumes behind a number that it has seen
				}
				if got := follow(t, topic, from, numbers); !slices.Equal(got, upTo(from+1, numbers)) {
					t.Errorf("follower %d from %d saw %v, want each number up to %d once", i, from, got, numbers)
				}
			})
		}
		begin := time.Now()
		for range numbers {
			time.Sleep(50 * time.Millisecond)
			log.add(1)
		}
		wg.Wait()
		took := time.Since(begin)
		if most := int64(took/interval) + 20; log.reads.Load() > most {
			t.Errorf("%d followers cost %d reads in %s, want at most %d", followers, log.reads.Load(), took, most)
		}
		if n := hub.Topics(); n != 0 {
			t.Errorf("%d topics after the last follower left, want 0", n)
		}
	})
}

// A read begins after the call of Next: a follower that was notified of an item gets it.
func TestNextReadsAfterItsCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		topic := hub.Follow(t.Context(), "t_a", "log", func(ctx context.Context, from int) (feeds.Batch[int, int, bool], error) {
			batch, err := log.read(ctx, from)
			time.Sleep(100 * time.Millisecond) // the answer is under way
			return batch, err
		})
		defer topic.Leave()
		first := make(chan struct{})
		go func() {
			defer close(first)
			if _, err := topic.Next(t.Context(), 0); err != nil {
				t.Errorf("Next: %v", err)
			}
		}()
		time.Sleep(50 * time.Millisecond) // the first read has begun
		log.add(1)
		batch, err := topic.Next(t.Context(), 0)
		if err != nil || !slices.Equal(batch.Items, []int{1}) {
			t.Errorf("Next after an item was added = %v, %v, want the item", batch.Items, err)
		}
		<-first
	})
}

// A follower at the end that joins a read which another asked for before the end moved gets
// what lies behind its own position only.
func TestJoinedReadRepeatsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		log.add(3)
		topic := hub.Follow(t.Context(), "t_a", "log", func(ctx context.Context, from int) (feeds.Batch[int, int, bool], error) {
			batch, err := log.read(ctx, from)
			time.Sleep(interval / 2) // the answer is under way
			return batch, err
		})
		defer topic.Leave()
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				// The second asks while the first read is under way, and waits for the next one.
				// The first moves the end, and joins it there.
				time.Sleep(time.Duration(i) * interval / 4)
				if got := follow(t, topic, 0, 6); !slices.Equal(got, upTo(1, 6)) {
					t.Errorf("follower %d saw %v, want each number up to 6 once", i, got)
				}
			})
		}
		time.Sleep(interval)
		log.add(3)
		wg.Wait()
	})
}

// A follower that is slow, or comes late, reads the store until it has caught up; a large log is
// read without pauses.
func TestSlowFollowersCatchUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		log.add(5000)
		fast, slow := hub.Follow(t.Context(), "t_a", "log", log.read), hub.Follow(t.Context(), "t_a", "log", log.read)
		defer fast.Leave()
		defer slow.Leave()
		begin := time.Now()
		follow(t, fast, 0, 5000)
		if took := time.Since(begin); took > 2*interval {
			t.Errorf("50 pages took %s, want no pause between them", took)
		}
		if got := follow(t, slow, 0, 5000); !slices.Equal(got, upTo(1, 5000)) {
			t.Errorf("a follower that comes late saw %d numbers, want 5000", len(got))
		}
		reads := log.reads.Load()
		log.add(1)
		if got := follow(t, slow, 4990, 5001); !slices.Equal(got, upTo(4991, 5001)) || log.reads.Load() != reads+1 {
			t.Errorf("a follower that resumes near the end saw %v with %d reads, want the rest with one", got, log.reads.Load()-reads)
		}
	})
}

// Items that are gone are announced, and following goes on behind them.
func TestGaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		topic := hub.Follow(t.Context(), "t_a", "log", log.read)
		defer topic.Leave()
		log.add(10)
		follow(t, topic, 0, 10)
		log.add(1000)
		log.lost = 1000
		batch, err := topic.Next(t.Context(), 10)
		if err != nil || !batch.Gap || !slices.Equal(batch.Items, upTo(1001, 1010)) {
			t.Errorf("Next over a gap = %+v, %v, want a gap and the last ten", batch, err)
		}
		log.add(1)
		if batch, err := topic.Next(t.Context(), batch.Next); err != nil || batch.Gap || !slices.Equal(batch.Items, []int{1011}) {
			t.Errorf("Next behind the gap = %+v, %v, want the next number", batch, err)
		}
		if batch, err := topic.Next(t.Context(), 5); err != nil || !batch.Gap {
			t.Errorf("Next from before the gap = %+v, %v, want a gap", batch, err)
		}
	})
}

// All who wait for a read see its failure; a client that goes away does not.
func TestFailuresAndCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100, fails: errors.New("the store is away")}
		topic := hub.Follow(t.Context(), "t_a", "log", log.read)
		defer topic.Leave()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := topic.Next(t.Context(), 0); !errors.Is(err, log.fails) {
					t.Errorf("Next of a failing read = %v, want its error", err)
				}
			})
		}
		wg.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := topic.Next(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next of a client that goes away = %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// A tenant that follows very many things reads each of them less often; others do not notice.
func TestManyTopicsOfATenant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := newHub()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		run := func(tenant, name string) *thing {
			log := &thing{page: 100}
			go func() {
				topic := hub.Follow(ctx, tenant, name, log.read)
				defer topic.Leave()
				for {
					if _, err := topic.Next(ctx, 0); err != nil {
						return
					}
				}
			}()
			return log
		}
		var many []*thing
		for i := range 500 {
			many = append(many, run("t_many", string(rune('a'+i))))
		}
		other := run("t_other", "log")
		<-ctx.Done()
		synctest.Wait()
		var reads int64
		for _, log := range many {
			reads += log.reads.Load()
		}
		if reads > 20*250+2*500 {
			t.Errorf("500 topics of a tenant cost %d reads in 20 s, want at most 250 a second", reads)
		}
		if n := other.reads.Load(); n < 95 {
			t.Errorf("the topic of another tenant was read %d times in 20 s, want 100", n)
		}
	})
}

// Followers that are ahead of a topic share its reads, also after those at its end have left.
func TestTopicOutlivesTheFollowersAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, log := newHub(), &thing{page: 100}
		first := hub.Follow(t.Context(), "t_a", "log", log.read)
		if _, err := first.Next(t.Context(), 0); err != nil {
			t.Fatalf("Next: %v", err)
		}
		log.add(10)
		const followers, numbers = 50, 100
		ready, begin := make(chan struct{}), time.Now()
		var wg sync.WaitGroup
		for range followers {
			topic := hub.Follow(t.Context(), "t_a", "log", log.read)
			wg.Go(func() {
				defer topic.Leave()
				<-ready
				if got := follow(t, topic, 10, 10+numbers); !slices.Equal(got, upTo(11, 10+numbers)) {
					t.Errorf("a follower saw %v, want each number from 11 on once", got)
				}
			})
		}
		first.Leave() // the only one at the end of the topic
		close(ready)
		for range numbers {
			time.Sleep(50 * time.Millisecond)
			log.add(1)
		}
		wg.Wait()
		if most := int64(time.Since(begin)/interval) + 2*followers; log.reads.Load() > most {
			t.Errorf("%d followers cost %d reads in %s, want at most %d", followers, log.reads.Load(), time.Since(begin), most)
		}
	})
}
