package documents

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

const (
	// publishInterval is the shortest time between two publishings of one process.
	publishInterval = 5 * time.Millisecond
	// publishTimeout limits the duration of one publishing.
	publishTimeout = 5 * time.Second
)

// feeds notifies the followers of a namespace of its changes: followers in this process
// directly, others by a notice through the store. Notices are best effort; followers must
// also look by themselves from time to time. A notice is tenant/install/namespace on the
// channel cs:doc:changes; it contains no change. A process listens once it has had a follower.
// The zero value with s is ready for use.
type feeds struct {
	s *storage.Store

	mu          sync.Mutex
	unpublished map[storage.DocumentPath]struct{} // namespaces with changes that are not published yet
	sending     bool
	listening   bool
	waiting     map[storage.DocumentPath]map[chan struct{}]struct{}
}

// Follow returns a channel that receives a token whenever the namespace may have changed,
// until done is called.
func (r *Repository) Follow(p storage.DocumentPath) (changed <-chan struct{}, done func()) {
	return r.feeds.follow(p)
}

func (f *feeds) follow(p storage.DocumentPath) (changed <-chan struct{}, done func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = map[storage.DocumentPath]map[chan struct{}]struct{}{}
	}
	if f.waiting[p] == nil {
		f.waiting[p] = map[chan struct{}]struct{}{}
	}
	f.waiting[p][ch] = struct{}{}
	if !f.listening {
		f.listening = f.s.Go(f.listen)
	}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting[p], ch)
		if len(f.waiting[p]) == 0 {
			delete(f.waiting, p)
		}
	}
}

// wrote notifies the followers of p in this process, and publishes a notice to the others.
func (f *feeds) wrote(p storage.DocumentPath) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notify(p)
	if f.unpublished == nil {
		f.unpublished = map[storage.DocumentPath]struct{}{}
	}
	f.unpublished[p] = struct{}{}
	if !f.sending {
		f.sending = f.s.Go(f.send)
	}
}

// notify wakes the followers in this process. The caller holds f.mu.
func (f *feeds) notify(p storage.DocumentPath) {
	for ch := range f.waiting[p] {
		select {
		case ch <- struct{}{}:
		default: // the channel holds a token already
		}
	}
}

// send publishes notices until none are left. Notices of one namespace within
// publishInterval become one.
func (f *feeds) send(life context.Context) {
	for {
		f.mu.Lock()
		batch := f.unpublished
		f.unpublished = nil
		f.sending = len(batch) > 0
		f.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(life, publishTimeout)
		if node, err := f.s.Publisher(ctx, f.s.Keys().DocumentChangesChannel()); err == nil { // best effort
			pipe := node.Pipeline()
			for p := range batch {
				pipe.Publish(ctx, f.s.Keys().DocumentChangesChannel(), p.Tenant+"/"+p.Install+"/"+p.Namespace)
			}
			_, _ = pipe.Exec(ctx) // best effort
		}
		cancel()
		select {
		case <-life.Done():
			return
		case <-time.After(publishInterval):
		}
	}
}

// listen receives the notices of all processes until life ends. After a reconnection every
// follower is woken, since notices may have been missed.
func (f *feeds) listen(life context.Context) {
	sub := f.s.Client().Subscribe(life, f.s.Keys().DocumentChangesChannel())
	defer func() { _ = sub.Close() }() // the subscription ends either way
	events := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-life.Done():
			return
		case event, open := <-events:
			if !open {
				return
			}
			f.receive(event)
		}
	}
}

func (f *feeds) receive(event any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch event := event.(type) {
	case *redis.Subscription:
		for p := range f.waiting {
			f.notify(p)
		}
	case *redis.Message:
		tenant, rest, _ := strings.Cut(event.Payload, "/")
		install, namespace, _ := strings.Cut(rest, "/")
		f.notify(storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace})
	}
}
