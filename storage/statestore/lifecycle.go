package statestore

import (
	"errors"
	"sync/atomic"

	"github.com/codesous/sous/api"
)

// Lifecycle is the part of a Store that closes it. Implementations embed it and call
// CheckOpen or CheckKey first in every method. Its zero value is open.
type Lifecycle struct{ closed atomic.Bool }

// Close makes later calls of CheckOpen and CheckKey fail. It releases no resources and
// always returns nil: a connection belongs to the code that opened it.
func (l *Lifecycle) Close() error {
	l.closed.Store(true)
	return nil
}

// CheckOpen returns CodeStoreUnavailable after Close.
func (l *Lifecycle) CheckOpen() error {
	if l.closed.Load() {
		return api.Errorf(api.CodeStoreUnavailable, "the state store is closed")
	}
	return nil
}

// CheckKey returns the errors of CheckOpen and ValidateKey.
func (l *Lifecycle) CheckKey(key string) error {
	return errors.Join(l.CheckOpen(), ValidateKey(key))
}
