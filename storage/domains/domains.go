// Package domains keeps custom domains: the domains that tenants claim, and which tenant owns each
// verified one.
//
// A claim is a record of one tenant. It has the function that the domain stands for, and a random
// token, which the tenant publishes in the DNS zone of the domain. Any number of tenants may claim
// the same domain. The owner of a domain is a field of one hash that all tenants share, with the
// token that was found:
//
//	cs:domain:t_acme01:shop.example.com   {"domain":"shop.example.com","function":"shop",…,"token":"k3x…"}
//	cs:domain:t_acme01:index              {shop.example.com, …}
//	cs:domain:owners                      shop.example.com → {"tenant":"t_acme01","token":"k3x…",…}
//
// A domain is served if it has an owner whose claim exists and has the same token. So each fact is
// stored once, and the keys, which are in different slots of a cluster, need no common step: the
// removal of a claim ends its domain by itself. The owner that is left behind is dead, since no
// claim gets its token again; whatever finds a dead owner may replace or remove it.
//
// A crash after each write of Put leaves: an entry of the index, which readers skip; the claim. Of
// Verify: the owner. Of Delete: an entry of the index and a dead owner; a dead owner; nothing.
//
// index.go has the view of all domains by which a replica serves them.
package domains

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

// The scripts of domains, by the names of their files in package lua.
const (
	scriptPut = "domain_put.lua"
	scriptOwn = "domain_own.lua"
)

// claim is a tenant's claim to a domain in its stored form.
type claim struct {
	Domain string `json:"domain"`
	domain.Target
	Token       string `json:"token"`
	Revision    int64  `json:"revision"`
	CreatedAtMS int64  `json:"created_at_ms"`
	UpdatedAtMS int64  `json:"updated_at_ms"`
}

// owner is the owner of a domain in its stored form. The zero owner is none.
type owner struct {
	Tenant       string `json:"tenant"`
	Token        string `json:"token"`
	VerifiedAtMS int64  `json:"verified_at_ms"`
}

// proves reports whether o is the owner by the claim of a tenant.
func (o *owner) proves(tenant string, c *claim) bool {
	return c != nil && o.Tenant == tenant && o.Token == c.Token
}

// status returns the claim with its state, by the owner of the domain.
func (c *claim) status(tenant string, o *owner) domain.Domain {
	d := domain.Domain{
		Domain: c.Domain, Target: c.Target, State: domain.Pending, Record: domain.Challenge(c.Domain, c.Token),
		Revision: c.Revision, CreatedAtMS: c.CreatedAtMS, UpdatedAtMS: c.UpdatedAtMS,
	}
	if o.proves(tenant, c) {
		d.State, d.VerifiedAtMS = domain.Verified, o.VerifiedAtMS
	}
	return d
}

// Repository keeps custom domains. Names of domains are in the form that domain.Parse returns. It
// is safe for concurrent use, by any number of processes.
type Repository struct{ s *storage.Store }

// New returns the custom domains in s.
func New(s *storage.Store) *Repository { return &Repository{s} }

// Condition guards a Put.
type Condition struct {
	IfMatch *int64 // the revision that the domain must have; nil accepts any
	IfNew   bool   // the tenant must not have the domain
}

// check returns CodePreconditionFailed or CodeDomainNotFound unless held, nil for a missing claim,
// meets the condition.
func (c Condition) check(name string, held *claim) error {
	switch {
	case c.IfNew && held != nil:
		return api.Errorf(api.CodePreconditionFailed, "the tenant has the domain %s already", name)
	case c.IfMatch != nil && held == nil:
		return notFound(name)
	case c.IfMatch != nil && held.Revision != *c.IfMatch:
		return api.Errorf(api.CodePreconditionFailed, "the domain %s is at revision %d", name, held.Revision)
	}
	return nil
}

func notFound(name string) error {
	return api.Errorf(api.CodeDomainNotFound, "the tenant has no domain %s", name)
}

// Put adds the domain to a tenant, with a token that was never used before, or changes its target.
// The domain of a tenant keeps its token and its state. A target that the domain has already
// changes nothing. nowMS is milliseconds since 1970. CodePreconditionFailed, CodeDomainNotFound
// for an IfMatch, CodeTenantQuota.
func (r *Repository) Put(ctx context.Context, tenant, name string, to domain.Target, token string, on Condition, nowMS int64) (out domain.Domain, created bool, err error) {
	unchanged := false
	err = storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.claim(ctx, tenant, name)
		if err == nil {
			err = on.check(name, held)
		}
		if err != nil {
			return err
		}
		by, _, err := r.owner(ctx, name)
		if err != nil {
			return err
		}
		created, unchanged = held == nil, false
		next := claim{Domain: name, Target: to, Token: token, Revision: 1, CreatedAtMS: nowMS, UpdatedAtMS: nowMS}
		if !created {
			unchanged = held.Target == to
			next.Token, next.CreatedAtMS, next.Revision = held.Token, held.CreatedAtMS, held.Revision+1
		}
		if unchanged {
			out = held.status(tenant, &by)
			return nil
		}
		out = next.status(tenant, &by)
		write := func() error { return r.write(ctx, tenant, name, raw, &next) }
		if !created {
			return write()
		}
		return r.s.Taking(ctx, tenant, write, storage.One(quota.Domains))
	})
	if err == nil && !unchanged {
		r.notify(ctx, tenant, name)
	}
	return out, created, err
}

// write stores a claim, nil to remove it, if the stored text still is before.
func (r *Repository) write(ctx context.Context, tenant, name, before string, c *claim) error {
	after := ""
	if c != nil {
		var err error
		after, err = storage.Encode(c)
		if err != nil {
			return err
		}
	}
	k := r.s.Keys()
	_, err := r.s.Script(ctx, scriptPut, []string{k.Domain(tenant, name), k.DomainIndex(tenant)}, before, after, name)
	return err
}

// notify publishes a change to the replicas. Best effort: they also read all domains every half
// minute.
func (r *Repository) notify(ctx context.Context, tenant, name string) {
	_ = r.s.PublishChange(ctx, storage.Change{Kind: storage.ChangeDomain, Tenant: tenant, Domain: name})
}

// claim returns a tenant's claim, nil for none, and its stored text.
func (r *Repository) claim(ctx context.Context, tenant, name string) (*claim, string, error) {
	raw, err := r.s.Client().Get(ctx, r.s.Keys().Domain(tenant, name)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", storage.Failure(ctx, "read domain", err)
	}
	c, err := storage.Decode[claim](raw)
	return &c, raw, err
}

// owner returns the owner of a domain, and its stored text, "" for none.
func (r *Repository) owner(ctx context.Context, name string) (owner, string, error) {
	raw, err := r.s.Client().HGet(ctx, r.s.Keys().DomainOwners(), name).Result()
	if errors.Is(err, redis.Nil) {
		return owner{}, "", nil
	}
	if err != nil {
		return owner{}, "", storage.Failure(ctx, "read owner of domain", err)
	}
	o, err := storage.Decode[owner](raw)
	return o, raw, err
}

// own sets the owner of a domain, "" for none, if the stored text still is before.
// CodeStoreConflict.
func (r *Repository) own(ctx context.Context, name, before, after string) error {
	_, err := r.s.Script(ctx, scriptOwn, []string{r.s.Keys().DomainOwners()}, before, after, name)
	return err
}

// Get returns a domain of a tenant. CodeDomainNotFound.
func (r *Repository) Get(ctx context.Context, tenant, name string) (domain.Domain, error) {
	held, _, err := r.claim(ctx, tenant, name)
	if err == nil && held == nil {
		err = notFound(name)
	}
	if err != nil {
		return domain.Domain{}, err
	}
	by, _, err := r.owner(ctx, name)
	return held.status(tenant, &by), err
}

// List returns a page of a tenant's domains by name, after the domain after. next is "" at the
// end. A page may be short and still have a next.
func (r *Repository) List(ctx context.Context, tenant, after string, limit int) (items []domain.Domain, next string, err error) {
	limit = storage.PageLimit(limit)
	names, err := r.s.LexRange(ctx, r.s.Keys().DomainIndex(tenant), after, limit+1)
	if err != nil {
		return nil, "", storage.Failure(ctx, "list domains", err)
	}
	names, next = storage.FirstPage(names, limit)
	items = []domain.Domain{}
	if len(names) == 0 {
		return items, "", nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = r.s.Keys().Domain(tenant, name)
	}
	raws, err := r.s.GetMany(ctx, keys)
	if err != nil {
		return nil, "", storage.Failure(ctx, "list domains", err)
	}
	owners, err := r.owners(ctx, names)
	if err != nil {
		return nil, "", err
	}
	for i, raw := range raws {
		if raw == "" { // the remains of an interrupted write
			continue
		}
		c, err := storage.Decode[claim](raw)
		if err != nil {
			return nil, "", err
		}
		by, _ := storage.Decode[owner](owners[i]) // "" is no owner, and no tenant is one of a record that cannot be read
		items = append(items, c.status(tenant, &by))
	}
	return items, next, nil
}

// owners returns the stored texts of the owners of domains, "" for none.
func (r *Repository) owners(ctx context.Context, names []string) ([]string, error) {
	values, err := r.s.Client().HMGet(ctx, r.s.Keys().DomainOwners(), names...).Result()
	if err != nil {
		return nil, storage.Failure(ctx, "read owners of domains", err)
	}
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out, nil
}

// Delete removes a domain from a tenant; with ifMatch, only if that is its revision. It is not
// served afterwards. CodeDomainNotFound, CodePreconditionFailed.
func (r *Repository) Delete(ctx context.Context, tenant, name string, ifMatch *int64) error {
	var removed *claim
	err := storage.RetryConflicts(ctx, func() error {
		held, raw, err := r.claim(ctx, tenant, name)
		if err != nil {
			return err
		}
		if held != nil {
			err = Condition{IfMatch: ifMatch}.check(name, held)
			if err != nil {
				return err
			}
		}
		removed = held
		return r.write(ctx, tenant, name, raw, nil)
	})
	if err != nil {
		return err
	}
	if removed == nil {
		r.notify(ctx, tenant, name) // an earlier try may have been interrupted before
		return notFound(name)
	}
	r.s.Returned(ctx, tenant, storage.One(quota.Domains))
	if by, raw, err := r.owner(ctx, name); err == nil && by.proves(tenant, removed) {
		_ = r.own(ctx, name, raw, "") // the owner is dead: what fails here, an Index removes later
	}
	r.notify(ctx, tenant, name)
	return nil
}
