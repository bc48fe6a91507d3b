package vault

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/codesous/sous/storage/secrets"
)

// sharedRedactors keeps one redactor for each distinct list of values: the versions of a
// function, and functions that name the same secrets, share it.
type sharedRedactors struct {
	salt [sha256.Size]byte

	mu    sync.Mutex
	known map[[sha256.Size]byte]*sharedRedactor
	bytes int64
}

// sharedRedactor is a redactor with the number of generations that use it. A nil one is that of
// a generation without values.
type sharedRedactor struct {
	all      *sharedRedactors
	key      [sha256.Size]byte
	redactor *redactor // nil if there is nothing to find
	users    int       // guarded by the mutex of all
}

func newSharedRedactors() *sharedRedactors {
	s := &sharedRedactors{known: map[[sha256.Size]byte]*sharedRedactor{}}
	_, _ = rand.Read(s.salt[:]) // it does not fail
	return s
}

// of returns the redactor of values, which build makes if none is known. The caller releases it.
func (s *sharedRedactors) of(values []secrets.Value, build func(texts []string) *redactor) *sharedRedactor {
	key := s.keyOf(values)
	if one := s.find(key); one != nil {
		return one
	}
	texts := make([]string, len(values)) // "" for what could not be opened
	for i := range values {
		texts[i] = string(values[i].Text)
	}
	made := build(texts) // without the mutex: it takes a while
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.known[key]; one != nil { // another read has made it meanwhile
		one.users++
		return one
	}
	one := &sharedRedactor{all: s, key: key, redactor: made, users: 1}
	s.known[key] = one
	s.bytes += int64(made.size())
	return one
}

// find returns the redactor of a key with one user more, nil if it is not known.
func (s *sharedRedactors) find(key [sha256.Size]byte) *sharedRedactor {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.known[key]
	if one != nil {
		one.users++
	}
	return one
}

// keyOf returns the hash of the values in their order. The salt keeps it from being that of a
// value that somebody guesses.
func (s *sharedRedactors) keyOf(values []secrets.Value) (key [sha256.Size]byte) {
	h := sha256.New()
	_, _ = h.Write(s.salt[:]) // a hash takes all
	for i := range values {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(values[i].Text)))
		_, _ = h.Write(length[:])
		_, _ = h.Write(values[i].Text)
	}
	h.Sum(key[:0])
	return key
}

// size returns the memory of all redactors, in bytes.
func (s *sharedRedactors) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// release ends one use. A redactor without users is forgotten.
func (one *sharedRedactor) release() {
	if one == nil {
		return
	}
	s := one.all
	s.mu.Lock()
	defer s.mu.Unlock()
	one.users--
	if one.users == 0 {
		delete(s.known, one.key)
		s.bytes -= int64(one.redactor.size())
	}
}

// valueBytes returns the size of the values of a generation, 0 for none.
func (g *generation) valueBytes() (n int64) {
	if g == nil {
		return 0
	}
	for i := range g.values {
		n += int64(len(g.values[i].Text))
	}
	return n
}
