package domains

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/sleep"
	"github.com/codesous/sous/storage"
)

const (
	// readEvery is the interval between reads of all domains: notices of changes can be lost.
	readEvery = 30 * time.Second
	// readAgain is the interval after a failed read.
	readAgain = time.Second
	// readPause is the time between a notice and the read: many changes are one read.
	readPause = 50 * time.Millisecond
	// readStep is how many domains one round trip reads.
	readStep = 256
	// maxChanged is the number of changed domains from which all are read.
	maxChanged = 1024
)

// Found is a domain that is served. Its Target is empty if the claim is of a newer release, which
// this one cannot read: the host then has no function, but it is not a host of the API either.
type Found struct {
	Tenant string
	domain.Target
}

// Index is a replica's view of the verified domains of all tenants. It is complete: a host that is
// not in it is no custom domain, and costs no command. It is readEvery old at most if notices of
// changes are lost. It is safe for concurrent use.
type Index struct {
	repository *Repository
	reserved   domain.Reserved
	hosts      sync.Map     // of *Found, by domain
	count      atomic.Int64 // of hosts
	wake       chan struct{}
	next       time.Time // of a read of all; only Read and Follow use it

	mu      sync.Mutex
	all     bool                // everything may have changed
	changed map[string]struct{} // domains that may have changed
}

// NewIndex returns an empty view, which Read and Follow fill. It contains no domain that is
// reserved, even if one was verified before it was.
func NewIndex(r *Repository, reserved domain.Reserved) *Index {
	return &Index{repository: r, reserved: reserved, wake: make(chan struct{}, 1), changed: map[string]struct{}{}}
}

// Empty reports whether there is no domain.
func (x *Index) Empty() bool { return x.count.Load() == 0 }

// Of returns the function of a host, nil if it is no custom domain. The host is a name as
// domain.Parse returns it.
func (x *Index) Of(host string) *Found {
	if x.Empty() {
		return nil
	}
	found, _ := x.hosts.Load(host)
	f, _ := found.(*Found)
	return f
}

// OnChange has the domain of a notice read again. It does not block.
func (x *Index) OnChange(c storage.Change) {
	x.mu.Lock()
	switch c.Kind {
	case storage.ChangeDomain:
		x.changed[c.Domain] = struct{}{}
		x.all = x.all || len(x.changed) > maxChanged
	case storage.ChangeResubscribed:
		x.all = true
	default:
		x.mu.Unlock()
		return
	}
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default: // a token is there already
	}
}

// Follow keeps the view current until ctx ends: it reads the domains of notices, and each
// readEvery all of them.
func (x *Index) Follow(ctx context.Context, logger *zap.Logger) {
	failing := false
	for ctx.Err() == nil {
		var err error
		if time.Now().Before(x.next) {
			err = x.readChanged(ctx)
		} else {
			err = x.Read(ctx)
		}
		wait := time.Until(x.next)
		if err != nil {
			x.next = time.Time{} // all are read again
			wait = readAgain
			if !failing && ctx.Err() == nil {
				logger.Warn("reading custom domains failed", zap.Error(err))
			}
		}
		failing = err != nil
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-x.wake:
			pause := readPause
			if failing {
				pause = readAgain
			}
			_ = sleep.For(ctx, pause) // ctx is looked at by the loop
		}
		timer.Stop()
	}
}

// take returns the domains that may have changed since the last call, and whether all may have.
func (x *Index) take() (names []string, all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name := range x.changed {
		names = append(names, name)
	}
	all, x.all = x.all, false
	clear(x.changed)
	return names, all
}

// readChanged reads the domains of notices.
func (x *Index) readChanged(ctx context.Context) error {
	names, all := x.take()
	if all {
		return x.Read(ctx)
	}
	for step := range slices.Chunk(names, readStep) {
		raws, err := x.repository.owners(ctx, step)
		if err == nil {
			err = x.update(ctx, step, raws)
		}
		if err != nil {
			return err // Follow reads all then
		}
	}
	return nil
}

// Read reads all domains, and removes dead owners from the store. It must not be called while
// Follow runs. CodeStoreUnavailable: the view may be a part of the old one and a part of the new.
func (x *Index) Read(ctx context.Context) error {
	x.take() // what changes from now on is read again
	seen := map[string]struct{}{}
	client, key := x.repository.s.Client(), x.repository.s.Keys().DomainOwners()
	for cursor := uint64(0); ; {
		fields, following, err := client.HScan(ctx, key, cursor, "", readStep).Result()
		if err != nil {
			return storage.Failure(ctx, "read custom domains", err)
		}
		var names, raws []string
		for i := 0; i+1 < len(fields); i += 2 {
			names, raws = append(names, fields[i]), append(raws, fields[i+1])
			seen[fields[i]] = struct{}{}
		}
		if err := x.update(ctx, names, raws); err != nil {
			return err
		}
		if following == 0 {
			break
		}
		cursor = following
	}
	x.hosts.Range(func(host, _ any) bool {
		if _, ok := seen[host.(string)]; !ok {
			x.set(host.(string), nil)
		}
		return true
	})
	x.next = time.Now().Add(readEvery - rand.N(readEvery/10)) // so that replicas do not read at the same time
	return nil
}

// update reads the claims of the owners of domains, whose stored texts are raws, into the view.
func (x *Index) update(ctx context.Context, names, raws []string) error {
	pipe := x.repository.s.Client().Pipeline()
	owners, claims := make([]owner, len(names)), make([]*redis.StringCmd, len(names))
	for i, raw := range raws {
		if raw == "" {
			continue
		}
		var err error
		owners[i], err = storage.Decode[owner](raw)
		if err == nil {
			claims[i] = pipe.Get(ctx, x.repository.s.Keys().Domain(owners[i].Tenant, names[i]))
		}
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return storage.Failure(ctx, "read custom domains", err)
	}
	for i, name := range names {
		found, dead, err := resolve(&owners[i], claims[i])
		if err != nil {
			return storage.Failure(ctx, "read custom domains", err)
		}
		switch {
		case raws[i] == "" || dead:
			found = nil
		case x.reserved.Covers(name):
			found = nil
		}
		x.set(name, found)
		if dead {
			err := x.repository.own(ctx, name, raws[i], "") // no claim gets its token again
			if err != nil && api.ErrorCode(err) != api.CodeStoreConflict {
				return err
			}
		}
	}
	return nil
}

// resolve returns the function of a domain by its owner and the claim of that, nil for an owner
// that cannot be read. dead reports that the claim is gone.
func resolve(by *owner, read *redis.StringCmd) (found *Found, dead bool, err error) {
	if read == nil {
		return &Found{Tenant: by.Tenant}, false, nil
	}
	raw, err := read.Result()
	if errors.Is(err, redis.Nil) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	c, err := storage.Decode[claim](raw)
	if err != nil {
		return &Found{Tenant: by.Tenant}, false, nil //nolint:nilerr // see Found
	}
	if !by.proves(by.Tenant, &c) {
		return nil, true, nil
	}
	return &Found{Tenant: by.Tenant, Target: c.Target}, false, nil
}

// set sets the function of a host, nil for none. Only one goroutine calls it at a time.
func (x *Index) set(host string, found *Found) {
	if found == nil {
		if _, was := x.hosts.LoadAndDelete(host); was {
			x.count.Add(-1)
		}
		return
	}
	if _, was := x.hosts.Swap(host, found); !was {
		x.count.Add(1)
	}
}
