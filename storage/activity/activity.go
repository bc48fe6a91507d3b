// Package activity tells the mirrors of all replicas which functions ran a moment ago. Most activations
// have no event, so a mirror would find their records only when it compares everything.
package activity

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage"
)

const (
	// interval is the time between two notices of a replica.
	interval = time.Second
	// maxFunctions bounds the functions of a notice. Mirrors find the records of further ones later.
	maxFunctions = 500
)

// Function names a function.
type Function struct{ Tenant, Namespace, Name string }

// Notices sends the functions that ran on a replica, at most once a second. It is safe for concurrent
// use.
type Notices struct {
	store *storage.Store
	log   *zap.Logger
	wake  chan struct{}

	mu  sync.Mutex
	ran map[Function]struct{} // since the last notice
}

// New returns the Notices of a replica, which sends them until life ends.
func New(life context.Context, store *storage.Store, log *zap.Logger) *Notices {
	n := &Notices{store: store, log: log, wake: make(chan struct{}, 1), ran: map[Function]struct{}{}}
	go n.send(life)
	return n
}

// Note notes that an activation of a function began or ended. The record of it may be written later:
// mirrors look again for some time.
func (n *Notices) Note(f Function) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ran) < maxFunctions {
		n.ran[f] = struct{}{}
	}
	if len(n.ran) == 1 {
		select {
		case n.wake <- struct{}{}:
		default: // the last notice is being sent
		}
	}
}

// send sends notices until life ends.
func (n *Notices) send(life context.Context) {
	for {
		select {
		case <-life.Done():
			return
		case <-n.wake:
		}
		if text := n.take(); text != "" {
			if err := n.store.PublishChange(life, storage.Change{Kind: storage.ChangeRan, Functions: text}); err != nil {
				n.log.Debug("a notice of functions that ran was not sent; mirrors find their activations later", zap.Error(err))
			}
		}
		_ = sleep.For(life, interval) // the loop ends with life
	}
}

// take returns the functions that were noted, as Parse reads them.
func (n *Notices) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for f := range n.ran {
		names = append(names, f.Tenant+"/"+f.Namespace+"/"+f.Name)
	}
	clear(n.ran)
	return strings.Join(names, " ")
}

// Parse returns the functions of a notice of the kind storage.ChangeRan.
func Parse(c storage.Change) []Function {
	var out []Function
	for text := range strings.FieldsSeq(c.Functions) {
		tenant, rest, _ := strings.Cut(text, "/")
		namespace, name, valid := strings.Cut(rest, "/")
		if valid {
			out = append(out, Function{tenant, namespace, name})
		}
	}
	return out
}
