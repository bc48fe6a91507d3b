// Package listeners passes values to any number of listeners, none of which waits for another.
package listeners

import (
	"context"
	"sync"
)

// Waiting is how many values wait for one listener before it is told that it missed some.
const Waiting = 128

// Set is a set of listeners. It is safe for concurrent use.
type Set[T any] struct {
	mu      sync.Mutex
	members map[*Listener[T]]struct{}
}

// New returns an empty Set.
func New[T any]() *Set[T] { return &Set[T]{members: map[*Listener[T]]struct{}{}} }

// Add adds a listener. The values of every later Send wait for its Serve.
func (s *Set[T]) Add() *Listener[T] {
	l := &Listener[T]{set: s, waiting: make(chan T, Waiting), missed: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[l] = struct{}{}
	return l
}

// Send passes a value to every listener. It waits for none.
func (s *Set[T]) Send(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.members {
		select {
		case l.waiting <- value:
		default:
			select {
			case l.missed <- struct{}{}:
			default: // it will be told
			}
		}
	}
}

// Listener is a member of a Set.
type Listener[T any] struct {
	set     *Set[T]
	waiting chan T
	missed  chan struct{} // has room for one
}

// Serve calls hear with one value after the other until ctx ends, and with missed after some found
// no room because hear was too slow. Then it leaves the set.
func (l *Listener[T]) Serve(ctx context.Context, hear func(T), missed T) {
	defer func() {
		l.set.mu.Lock()
		defer l.set.mu.Unlock()
		delete(l.set.members, l)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case value := <-l.waiting:
			hear(value)
		case <-l.missed:
			hear(missed)
		}
	}
}
