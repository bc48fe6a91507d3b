package storage

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
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
	s *Store

	mu        sync.Mutex
	fresh     map[DocumentPath]struct{} // to be published
	sending   bool
	listening bool
	waiting   map[DocumentPath]map[chan struct{}]struct{}
}

// Follow gives a channel that gets a token whenever the namespace may have changed, until
// done is called.
func (r *Documents) Follow(p DocumentPath) (changed <-chan struct{}, done func()) {
	return r.feeds.follow(p)
}

func (f *feeds) follow(p DocumentPath) (changed <-chan struct{}, done func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = map[DocumentPath]map[chan struct{}]struct{}{}
	}
	if f.waiting[p] == nil {
		f.waiting[p] = map[chan struct{}]struct{}{}
	}
	f.waiting[p][ch] = struct{}{}
	if !f.listening {
		f.listening = true
		f.s.actors.Go(f.listen)
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
func (f *feeds) wrote(p DocumentPath) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell(p)
	if f.fresh == nil {
		f.fresh = map[DocumentPath]struct{}{}
	}
	f.fresh[p] = struct{}{}
	if !f.sending && f.s.life.Err() == nil {
		f.sending = true
		f.s.actors.Go(f.send)
	}
}

// tell wakes those who wait here. f.mu is held.
func (f *feeds) tell(p DocumentPath) {
	for ch := range f.waiting[p] {
		select {
		case ch <- struct{}{}:
		default: // a token is there already
		}
	}
}

// send publishes what is fresh, until nothing is.
func (f *feeds) send() {
	for {
		f.mu.Lock()
		fresh := f.fresh
		f.fresh = nil
		f.sending = len(fresh) > 0
		f.mu.Unlock()
		if len(fresh) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(f.s.life, feedsTimeout)
		if node, err := f.s.Publisher(ctx, channelDocuments); err == nil { // best effort
			pipe := node.Pipeline()
			for p := range fresh {
				pipe.Publish(ctx, channelDocuments, p.Tenant+"/"+p.Install+"/"+p.Namespace)
			}
			_, _ = pipe.Exec(ctx) // best effort
		}
		cancel()
		select {
		case <-f.s.life.Done():
			return
		case <-time.After(feedsEvery):
		}
	}
}

// listen hears the notices of all processes until the Store is closed. Where the
// connection was made anew, everybody looks: notices may have gone unheard.
func (f *feeds) listen() {
	sub := f.s.rdb.Subscribe(f.s.life, channelDocuments)
	defer func() { _ = sub.Close() }() // there is nobody left to tell
	events := sub.ChannelWithSubscriptions()
	for {
		select {
		case <-f.s.life.Done():
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
		f.tell(DocumentPath{tenant, install, namespace})
	}
}
