package domains

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage/domains"
)

// Resolver looks up TXT records. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// NewResolver returns a resolver that asks the DNS server at addr (host:port), or the servers of
// this machine if it is "".
func NewResolver(addr string) *net.Resolver {
	r := &net.Resolver{PreferGo: true}
	if addr != "" {
		r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}
	}
	return r
}

const (
	// lookupWithin bounds a lookup.
	lookupWithin = 5 * time.Second
	// lookupAgain is when a caller may repeat a lookup that failed.
	lookupAgain = 5 * time.Second
	// maxLookups bounds the lookups of a replica at a time, and maxLookupsOfTenant those of one tenant:
	// tenants choose the names, and so the servers that may not answer.
	maxLookups         = 32
	maxLookupsOfTenant = 4
)

// lookups are the lookups that a replica performs. It is safe for concurrent use.
type lookups struct {
	resolver Resolver

	mu  sync.Mutex
	all int
	by  map[string]int // by tenant
}

func newLookups(r Resolver) *lookups { return &lookups{resolver: r, by: map[string]int{}} }

// of returns the lookups of a tenant.
func (l *lookups) of(tenant string) domains.Lookup {
	return func(ctx context.Context, name string) ([]string, error) {
		if !l.enter(tenant) {
			e := api.Errorf(api.CodeCapacityLimit, "too many domains are being verified: try again")
			e.RetryAfter = time.Second
			return nil, e
		}
		defer l.leave(tenant)
		return l.lookup(ctx, name)
	}
}

func (l *lookups) enter(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxLookups || l.by[tenant] >= maxLookupsOfTenant {
		return false
	}
	l.all++
	l.by[tenant]++
	return true
}

func (l *lookups) leave(tenant string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	l.by[tenant]--
	if l.by[tenant] == 0 {
		delete(l.by, tenant)
	}
}

// lookup returns the values of the TXT records of name. The name ends with a dot for the resolver,
// which would otherwise also try it below the search domains of this machine. The error does not
// name the servers that were asked. CodeDomainLookup.
func (l *lookups) lookup(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupWithin)
	defer cancel()
	values, err := l.resolver.LookupTXT(ctx, name+".")
	var failed *net.DNSError
	if errors.As(err, &failed) && failed.IsNotFound {
		return nil, nil
	}
	if err != nil {
		e := api.Wrap(api.CodeDomainLookup, err, "the DNS did not answer the query for the TXT record of "+name+": try again")
		e.RetryAfter = lookupAgain
		return nil, e
	}
	return values, nil
}
