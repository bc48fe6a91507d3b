// Package metrics contains shared parts of the metrics of several packages. Each package
// defines its metrics in its file metrics.go; docs/metrics.md lists all of them.
//
// Register exports collectors, Loop has the metrics of a background loop, NewCache those of a
// cache, and Memo looks up the series of hot counters once. There is no global registry: a
// package receives its Registerer in its Config.
package metrics

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Namespace is the prefix of the names of all metrics.
const Namespace = "sous"

// Other is the label value for all values that have no time series of their own. No name
// of a resource begins with an underscore.
const Other = "_other"

// Register registers collectors with reg. If reg is nil, they are not exported. It tries all
// collectors and returns the joined errors, such as prometheus.AlreadyRegisteredError where two
// instances of a component share a registry.
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

// Memo caches a value for each key, so that the labels of a counter are looked up once. It
// never removes a value: the keys must be few. Reading takes no lock. The zero value is ready
// for use, by several goroutines at a time.
type Memo[K comparable, V any] struct {
	making sync.Mutex
	made   atomic.Pointer[map[K]V]
}

// Get returns the value of key, and calls produce for it the first time, under a lock: produce
// must not call Get of the same Memo. A new key copies the map.
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
