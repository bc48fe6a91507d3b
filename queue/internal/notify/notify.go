// Package notify wakes fetches that wait for work. Inside the process it does so directly;
// between processes it publishes a notice on a channel of the store. Notices may be lost:
// they only shorten the wait until the next poll, which reads the stored state.
//
// A notice is a message on storage.ChannelWake: "t_acme01/shop/mail", the queue that has work,
// or "due". Every process receives every notice, its own included. In this process a wait
// cannot miss work that is enqueued after it began:
//
//	fetch   Wait(queues)                 registers a channel
//	fetch   claims, finds nothing
//	enqueue stores the job, calls Wake   puts a token into the channel
//	fetch   receives the token, claims again
//
// Wait comes before the claim. In the other order, a job that is enqueued between the two would
// be noticed by the next poll only.
package notify

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/queue/internal/jobstore"
	"github.com/codesous/sous/storage"
)

// wakeEvery is the minimum interval between two publications of a process. Notices of one
// queue that fall into one interval are published once.
const wakeEvery = 5 * time.Millisecond

// publishTimeout limits one publication.
const publishTimeout = 5 * time.Second

// dueSoonNotice is the notice, in place of a queue's name, that something becomes due before
// the next regular read of the due sets. It has no slash and so is no queue.
const dueSoonNotice = "due"

// Notifier notifies waiting fetches, here and in other processes, that a queue has new work.
// It is safe for concurrent use.
type Notifier struct {
	cfg     Config
	mu      sync.Mutex
	waiting map[jobstore.Queue]map[chan struct{}]struct{}
	fresh   map[jobstore.Queue]struct{} // queues to be published; publish takes the whole map
	dueSoon bool                        // dueSoonNotice is to be published
	watches map[int]func(jobstore.Queue)
	watched int           // number of calls of Watch, the last key of watches
	news    chan struct{} // holds a token if there is something to be published
}

// Config is the configuration of a Notifier. Every field is required.
type Config struct {
	Store *storage.Store
	Log   *zap.Logger
	// DueSoon is called when another process reports that work is due soon.
	DueSoon func()
}

// New returns a Notifier whose goroutines, counted by work, run until life ends.
func New(life context.Context, work *sync.WaitGroup, cfg Config) *Notifier {
	n := &Notifier{
		cfg: cfg, waiting: map[jobstore.Queue]map[chan struct{}]struct{}{},
		fresh: map[jobstore.Queue]struct{}{}, watches: map[int]func(jobstore.Queue){}, news: make(chan struct{}, 1),
	}
	work.Go(func() { n.publish(life) })
	work.Go(func() { n.listen(life) })
	return n
}

// Wait returns a channel that receives a token when one of queues gets work. The channel holds
// one token, so several notices between two receives are one. A token is a hint: other fetches
// are notified of the same job and may claim it first. The caller must call done when it stops
// waiting.
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

// Watch calls notified for every queue that gets work, until stop is called. notified runs
// while the Notifier is locked: it must neither block nor call the Notifier.
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

// Wake notifies waiting fetches, here and in other processes, of work in q, which must be in
// the store already. It does not block.
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

// DueSoon notifies other processes that something becomes due soon. It does not block. Callers
// need it only if no loop in their own process reads the due sets.
func (n *Notifier) DueSoon() {
	n.mu.Lock()
	n.dueSoon = true
	n.mu.Unlock()
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// notify wakes the fetches that wait in this process. The caller holds n.mu.
func (n *Notifier) notify(q jobstore.Queue) {
	for ch := range n.waiting[q] {
		select {
		case ch <- struct{}{}:
		default: // a token is there already
		}
	}
	for _, notified := range n.watches {
		notified(q)
	}
}

// publish sends the pending notices, all in one pipeline, until life ends.
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
			n.cfg.Log.Debug("a notice of new work was not published; waiting fetches find the work by polling", zap.Error(err))
		}
		select {
		case <-life.Done():
			return
		case <-time.After(wakeEvery):
		}
	}
}

// send publishes in one pipeline that the queues of fresh have work and, if due is set, that
// something becomes due soon.
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

// listen handles the notices of other processes, until life ends. The client reconnects by
// itself; polling finds the work whose notices were lost meanwhile.
func (n *Notifier) listen(life context.Context) {
	sub := n.cfg.Store.Client().Subscribe(life, storage.ChannelWake)
	defer func() { _ = sub.Close() }() // no one can act on this error any more
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
