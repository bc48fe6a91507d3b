package queue

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/storage"
)

// wakeEvery is how often one queue's news is published at most. Notices only
// save those who wait their next poll, which is the truth.
const wakeEvery = 5 * time.Millisecond

// dueSoonNotice is sent where a queue's name is else: something is due before
// anybody would look.
const dueSoonNotice = "due"

// wakes tells those who wait for work that a queue got some: in this process at
// once, in others by a notice.
type wakes struct {
	b       *Broker
	mu      sync.Mutex
	waiting map[queueKey]map[chan struct{}]struct{}
	fresh   map[queueKey]struct{} // to be published
	dueSoon bool                  // to be published, too
	watches map[int]func(FunctionQueue)
	watched int           // ever
	news    chan struct{} // holds a token when there is something to be published
}

func newWakes(b *Broker) *wakes {
	w := &wakes{
		b: b, waiting: map[queueKey]map[chan struct{}]struct{}{},
		fresh: map[queueKey]struct{}{}, watches: map[int]func(FunctionQueue){}, news: make(chan struct{}, 1),
	}
	b.work.Go(w.publish)
	b.work.Go(w.listen)
	return w
}

// wait gives a channel that gets a token when one of queues gets work, until
// done is called.
func (w *wakes) wait(queues []queueKey) (woken <-chan struct{}, done func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, q := range queues {
		if w.waiting[q] == nil {
			w.waiting[q] = map[chan struct{}]struct{}{}
		}
		w.waiting[q][ch] = struct{}{}
	}
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, q := range queues {
			delete(w.waiting[q], ch)
			if len(w.waiting[q]) == 0 {
				delete(w.waiting, q)
			}
		}
	}
}

// watch has told called for every fn queue that gets work, until stop is called.
func (w *wakes) watch(told func(FunctionQueue)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched++
	n := w.watched
	w.watches[n] = told
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watches, n)
	}
}

// wake tells of work in q, here and elsewhere.
func (w *wakes) wake(q queueKey) {
	w.mu.Lock()
	w.tell(q)
	w.fresh[q] = struct{}{}
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// due tells other processes that something is due soon.
func (w *wakes) due() {
	w.mu.Lock()
	w.dueSoon = true
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// tell wakes those who wait here. w.mu is held.
func (w *wakes) tell(q queueKey) {
	for ch := range w.waiting[q] {
		select {
		case ch <- struct{}{}:
		default: // a token is there already
		}
	}
	if isFunctionQueue(q.queue) {
		for _, told := range w.watches {
			told(q.function())
		}
	}
}

// publish sends what is fresh, all of it in one pipeline.
func (w *wakes) publish() {
	for {
		select {
		case <-w.b.life.Done():
			return
		case <-w.news:
		}
		w.mu.Lock()
		fresh, due := w.fresh, w.dueSoon
		w.fresh, w.dueSoon = map[queueKey]struct{}{}, false
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(w.b.life, flushTimeout)
		err := w.send(ctx, fresh, due)
		cancel()
		if err != nil && w.b.life.Err() == nil {
			w.b.log.Debug("a notice of work was not sent", zap.Error(err))
		}
		select {
		case <-w.b.life.Done():
			return
		case <-time.After(wakeEvery):
		}
	}
}

// send publishes that jobs wait in queues, and that one is due soon, in one pipeline.
func (w *wakes) send(ctx context.Context, fresh map[queueKey]struct{}, due bool) error {
	node, err := w.b.store.Publisher(ctx, storage.ChannelWake)
	if err != nil {
		return err
	}
	pipe := node.Pipeline()
	for q := range fresh {
		pipe.Publish(ctx, storage.ChannelWake, q.tenant+"/"+q.name())
	}
	if due {
		pipe.Publish(ctx, storage.ChannelWake, dueSoonNotice)
	}
	_, err = pipe.Exec(ctx)
	return err
}

// listen hears the other processes' notices. The client makes its connection
// anew when it breaks; what was missed is found by polling.
func (w *wakes) listen() {
	sub := w.b.rdb.Subscribe(w.b.life, storage.ChannelWake)
	defer func() { _ = sub.Close() }() // there is nobody left to tell
	messages := sub.Channel()
	for {
		select {
		case <-w.b.life.Done():
			return
		case m, open := <-messages:
			if !open {
				return
			}
			if m.Payload == dueSoonNotice {
				w.b.alarm.Ring()
			} else if q, ok := parseQueue(m.Payload); ok {
				w.mu.Lock()
				w.tell(q)
				w.mu.Unlock()
			}
		}
	}
}

// parseQueue reads tenant/namespace/queue.
func parseQueue(s string) (queueKey, bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return queueKey{}, false
	}
	return queueKey{parts[0], parts[1], parts[2]}, true
}
