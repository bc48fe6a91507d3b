// Package keyedmutex provides a mutex for each key.
package keyedmutex

import (
	"context"
	"sync"
)

// Mutex is a lock for each key in use. A waiter stops waiting when its context ends.
type Mutex struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	turn  chan struct{} // holds a token while locked
	users int           // holder and waiters; the last one removes the entry
}

// New returns a Mutex whose keys are all unlocked.
func New() *Mutex { return &Mutex{held: map[string]*keyLock{}} }

// Lock waits for key and returns the function that releases it, or the error of ctx.
func (m *Mutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	m.mu.Lock()
	l := m.held[key]
	if l == nil {
		l = &keyLock{turn: make(chan struct{}, 1)}
		m.held[key] = l
	}
	l.users++
	m.mu.Unlock()

	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn; m.release(key, l) }, nil
	case <-ctx.Done():
		m.release(key, l)
		return nil, ctx.Err()
	}
}

func (m *Mutex) release(key string, l *keyLock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.users--
	if l.users == 0 {
		delete(m.held, key)
	}
}
