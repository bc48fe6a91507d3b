// Package metrics is what the metrics of several packages are made of. Each
// package keeps its own in its file metrics.go; docs/metrics.md lists all.
package metrics

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Namespace begins the name of every metric.
const Namespace = "sous"

// Other is the value of a label whose own value is not told apart. No name of
// ours begins with an underscore.
const Other = "_other"

// Register makes collectors known to reg. Where reg is nil they count for nobody.
func Register(reg prometheus.Registerer, collectors ...prometheus.Collector) error {
	if reg == nil {
		return nil
	}
	var errs []error
	for _, c := range collectors {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

// Memo keeps what was made for each key, so that a counter's labels are looked up
// once. It forgets nothing: the keys must be few. Reading takes no lock.
type Memo[K comparable, V any] struct {
	making sync.Mutex
	made   atomic.Pointer[map[K]V]
}

// Get gives what produce makes of key, made once.
func (m *Memo[K, V]) Get(key K, produce func(K) V) V {
	if made := m.made.Load(); made != nil {
		if v, ok := (*made)[key]; ok {
			return v
		}
	}
	m.making.Lock()
	defer m.making.Unlock()
	next := map[K]V{}
	if made := m.made.Load(); made != nil {
		if v, ok := (*made)[key]; ok {
			return v
		}
		next = maps.Clone(*made)
	}
	v := produce(key)
	next[key] = v
	m.made.Store(&next)
	return v
}
