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
	// feedsEvery is how often the news of one process is published at most.
	feedsEvery = 5 * time.Millisecond
	// feedsTimeout bounds one publishing.
	feedsTimeout = 5 * time.Second
)

// feeds tells those who follow a namespace that it changed: in this process at once, in
// others by a notice. Notices are best effort: who waits for one also looks by itself.
type feeds struct {
	s *storage.Store

	mu        sync.Mutex
	fresh     map[storage.DocumentPath]struct{} // to be published
	sending   bool
	listening bool
	waiting   map[storage.DocumentPath]map[chan struct{}]struct{}
}

// Follow gives a channel that gets a token whenever the namespace may have changed, until
// done is called.
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

// wrote tells of a change, here and elsewhere.
func (f *feeds) wrote(p storage.DocumentPath) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell(p)
	if f.fresh == nil {
		f.fresh = map[storage.DocumentPath]struct{}{}
	}
	f.fresh[p] = struct{}{}
	if !f.sending {
		f.sending = f.s.Go(f.send)
	}
}

// tell wakes those who wait here. f.mu is held.
func (f *feeds) tell(p storage.DocumentPath) {
	for ch := range f.waiting[p] {
		select {
		case ch <- struct{}{}:
		default: // a token is there already
		}
	}
}

// send publishes what is fresh, until nothing is.
func (f *feeds) send(life context.Context) {
	for {
		f.mu.Lock()
		fresh := f.fresh
		f.fresh = nil
		f.sending = len(fresh) > 0
		f.mu.Unlock()
		if len(fresh) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(life, feedsTimeout)
		if node, err := f.s.Publisher(ctx, f.s.Keys().DocumentChangesChannel()); err == nil { // best effort
			pipe := node.Pipeline()
			for p := range fresh {
				pipe.Publish(ctx, f.s.Keys().DocumentChangesChannel(), p.Tenant+"/"+p.Install+"/"+p.Namespace)
			}
			_, _ = pipe.Exec(ctx) // best effort
		}
		cancel()
		select {
		case <-life.Done():
			return
		case <-time.After(feedsEvery):
		}
	}
}

// listen hears the notices of all processes until the Store is closed. Where the
// connection was made anew, everybody looks: notices may have gone unheard.
func (f *feeds) listen(life context.Context) {
	sub := f.s.Client().Subscribe(life, f.s.Keys().DocumentChangesChannel())
	defer func() { _ = sub.Close() }() // there is nobody left to tell
	events := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-life.Done():
			return
		case event, open := <-events:
			if !open {
				return
			}
			f.hear(event)
		}
	}
}

func (f *feeds) hear(event any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch event := event.(type) {
	case *redis.Subscription:
		for p := range f.waiting {
			f.tell(p)
		}
	case *redis.Message:
		tenant, rest, _ := strings.Cut(event.Payload, "/")
		install, namespace, _ := strings.Cut(rest, "/")
		f.tell(storage.DocumentPath{Tenant: tenant, Install: install, Namespace: namespace})
	}
}
