package admission

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/codesous/sous/api"
)

// The limits of a server whose operator sets none, in requests of a client a second.
const (
	DefaultReads  = 2000
	DefaultWrites = 1000
)

const (
	// RateWait is how long a request waits for its turn. A client that sends requests one after the
	// other, or some at a time, is slowed down to its rate and meets no error.
	RateWait = 250 * time.Millisecond
	// rateClients is the number of clients after which the oldest half is forgotten.
	rateClients = 20_000
	// rateAge is the time after which clients that sent nothing are forgotten. They have all of
	// their burst then, like new ones.
	rateAge = 10 * time.Second
)

// RateConfig are the limits of each client on one replica, in requests a second; 0 is no limit. A
// client that was silent may send as many at once.
type RateConfig struct{ Reads, Writes int }

// Rates limits the requests of each client a second. It is safe for concurrent use.
type Rates struct {
	cfg RateConfig

	mu sync.Mutex
	// Clients of the present and of the last period. Those of the last one that send again move to
	// the present one.
	now, before map[Client]*clientRates
	began       time.Time
}

// Client is the sender of a request: the API key of a tenant, or an address where there are no
// keys.
type Client struct {
	Tenant, Key string
	Address     netip.Addr // only without a key
}

// ClientOf returns the client with a key of a tenant, "" for none, that is connected from remote.
func ClientOf(tenant, key, remote string) Client {
	if key == "" {
		return Client{Tenant: tenant, Address: AddressOf(remote)}
	}
	return Client{Tenant: tenant, Key: key}
}

type clientRates struct{ reads, writes *rate.Limiter }

// NewRates returns a limit of the requests of each client.
func NewRates(cfg RateConfig) *Rates {
	return &Rates{cfg: cfg, now: map[Client]*clientRates{}, before: map[Client]*clientRates{}}
}

// Take takes a place for a request of c at a time, and returns how long the request must wait
// for its turn: at most RateWait. Errors: CodeCapacityLimit, with the time to try again.
func (r *Rates) Take(c Client, write bool, at time.Time) (wait time.Duration, err error) {
	limit, kind := r.cfg.Reads, "reads"
	if write {
		limit, kind = r.cfg.Writes, "writes"
	}
	if limit <= 0 {
		return 0, nil
	}
	limiter := r.limiter(c, write, at)
	place := limiter.ReserveN(at, 1)
	wait = place.DelayFrom(at)
	if wait <= RateWait {
		return wait, nil
	}
	place.CancelAt(at)
	who := "the address of the client"
	if c.Key != "" {
		who = "the API key"
	}
	refusal := api.Errorf(api.CodeCapacityLimit, "%s sends more than %d %s a second to this replica", who, limit, kind)
	refusal.RetryAfter = wait
	return 0, refusal
}

// Clients returns the number of clients that are remembered, some of them twice.
func (r *Rates) Clients() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.now) + len(r.before)
}

// limiter returns the limiter of c's reads or writes.
func (r *Rates) limiter(c Client, write bool, at time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Sub(r.began) > rateAge || len(r.now) >= rateClients/2 {
		r.before, r.now, r.began = r.now, map[Client]*clientRates{}, at
	}
	found := r.now[c]
	if found == nil {
		found = r.before[c]
		if found == nil {
			found = &clientRates{
				reads:  rate.NewLimiter(rate.Limit(r.cfg.Reads), r.cfg.Reads),
				writes: rate.NewLimiter(rate.Limit(r.cfg.Writes), r.cfg.Writes),
			}
		}
		r.now[c] = found
	}
	if write {
		return found.writes
	}
	return found.reads
}
