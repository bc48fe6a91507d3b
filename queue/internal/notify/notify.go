package notify

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// wakeEvery is how often one queue's news is published at most. Notices only
// save those who wait their next poll, which is the truth.
const wakeEvery = 5 * time.Millisecond

// publishTimeout bounds one publication.
const publishTimeout = 5 * time.Second

// dueSoonNotice is sent where a queue's name is else: something is due before
// anybody would look.
const dueSoonNotice = "due"

// Notifier tells those who wait for work that a queue got some: in this process at
// once, in others by a notice.
type Notifier struct {
	cfg     Config
	mu      sync.Mutex
	waiting map[jobstore.Queue]map[chan struct{}]struct{}
	fresh   map[jobstore.Queue]struct{} // to be published
	dueSoon bool                        // to be published, too
	watches map[int]func(jobstore.Queue)
	watched int           // ever
	news    chan struct{} // holds a token when there is something to be published
}

// Config holds what a Notifier works with. Every field is required.
type Config struct {
	Store *storage.Store
	Log   *zap.Logger
	// DueSoon is called when another process reports that work is due soon.
	DueSoon func()
}

// New starts a Notifier, which runs in work until life ends.
func New(life context.Context, work *sync.WaitGroup, cfg Config) *Notifier {
	n := &Notifier{
		cfg: cfg, waiting: map[jobstore.Queue]map[chan struct{}]struct{}{},
		fresh: map[jobstore.Queue]struct{}{}, watches: map[int]func(jobstore.Queue){}, news: make(chan struct{}, 1),
	}
	work.Go(func() { n.publish(life) })
	work.Go(func() { n.listen(life) })
	return n
}

// Wait gives a channel that gets a token when one of queues gets work, until
// done is called.
func (n *Notifier) Wait(queues []jobstore.Queue) (woken <-chan struct{}, done func()) {
	ch := make(chan struct{}, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, q := range queues {
		if n.waiting[q] == nil {
			n.waiting[q] = map[chan struct{}]struct{}{}
		}
		n.waiting[q][ch] = struct{}{}
	}
	return ch, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, q := range queues {
			delete(n.waiting[q], ch)
			if len(n.waiting[q]) == 0 {
				delete(n.waiting, q)
			}
		}
	}
}

// Watch has told called for every fn queue that gets work, until stop is called.
func (n *Notifier) Watch(notified func(jobstore.Queue)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.watched++
	id := n.watched
	n.watches[id] = notified
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.watches, id)
	}
}

// Wake tells of work in q, here and elsewhere.
func (n *Notifier) Wake(q jobstore.Queue) {
	n.mu.Lock()
	n.notify(q)
	n.fresh[q] = struct{}{}
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// DueSoon tells other processes that something is due soon.
func (n *Notifier) DueSoon() {
	n.mu.Lock()
	n.dueSoon = true
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// notify wakes those who wait here. n.mu is held.
func (n *Notifier) notify(q jobstore.Queue) {
	for ch := range n.waiting[q] {
		select {
		case ch <- struct{}{}:
		default: // a token is there already
		}
	}
	if jobstore.IsFunctionQueue(q.Name) {
		for _, notified := range n.watches {
			notified(q)
		}
	}
}

// publish sends what is fresh, all of it in one pipeline.
func (n *Notifier) publish(life context.Context) {
	for {
		select {
		case <-life.Done():
			return
		case <-n.news:
		}
		n.mu.Lock()
		fresh, due := n.fresh, n.dueSoon
		n.fresh, n.dueSoon = map[jobstore.Queue]struct{}{}, false
		n.mu.Unlock()
		ctx, cancel := context.WithTimeout(life, publishTimeout)
		err := n.send(ctx, fresh, due)
		cancel()
		if err != nil && life.Err() == nil {
			n.cfg.Log.Debug("a notice of work was not sent", zap.Error(err))
		}
		select {
		case <-life.Done():
			return
		case <-time.After(wakeEvery):
		}
	}
}

// send publishes that jobs wait in queues, and that one is due soon, in one pipeline.
func (n *Notifier) send(ctx context.Context, fresh map[jobstore.Queue]struct{}, due bool) error {
	node, err := n.cfg.Store.Publisher(ctx, storage.ChannelWake)
	if err != nil {
		return err
	}
	pipe := node.Pipeline()
	for q := range fresh {
		pipe.Publish(ctx, storage.ChannelWake, q.Tenant+"/"+q.Path())
	}
	if due {
		pipe.Publish(ctx, storage.ChannelWake, dueSoonNotice)
	}
	_, err = pipe.Exec(ctx)
	return err
}

// listen hears the other processes' notices. The client makes its connection
// anew when it breaks; what was missed is found by polling.
func (n *Notifier) listen(life context.Context) {
	sub := n.cfg.Store.Client().Subscribe(life, storage.ChannelWake)
	defer func() { _ = sub.Close() }() // there is nobody left to tell
	messages := sub.Channel()
	for {
		select {
		case <-life.Done():
			return
		case m, open := <-messages:
			if !open {
				return
			}
			if m.Payload == dueSoonNotice {
				n.cfg.DueSoon()
			} else if q, ok := jobstore.ParseQueue(m.Payload); ok {
				n.mu.Lock()
				n.notify(q)
				n.mu.Unlock()
			}
		}
	}
}
