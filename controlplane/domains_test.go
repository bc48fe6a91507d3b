package controlplane_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/domain"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/controlplane/access"
	"github.com/codesous/sous/controlplane/domains"
	"github.com/codesous/sous/storage"
	storeaccess "github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/storagetest"
)

// customZone is the zone of the custom domains of these tests.
const customZone = "custom.example"

// zone is a Resolver with the TXT records of a zone, by name with a final dot.
type zone struct {
	mu      sync.Mutex
	records map[string][]string
	asked   []string
	err     error
	gate    chan struct{} // a lookup waits for it, unless it is nil
}

func (z *zone) LookupTXT(ctx context.Context, name string) ([]string, error) {
	z.mu.Lock()
	z.asked = append(z.asked, name)
	values, err, gate := z.records[name], z.err, z.gate
	z.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err == nil && len(values) == 0 {
		err = &net.DNSError{Err: "no such host", Name: name, Server: "10.9.8.7:53", IsNotFound: true}
	}
	return values, err
}

// set sets the values of a record.
func (z *zone) set(r domain.DNSRecord, values ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.records == nil {
		z.records = map[string][]string{}
	}
	z.records[r.Name+"."] = values
}

// everyRecord is a Resolver of a zone that has the record of each domain that a tenant claims.
type everyRecord struct {
	t     *testing.T
	store *storage.Store
}

func (r everyRecord) LookupTXT(ctx context.Context, name string) ([]string, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, domain.ChallengeLabel+"."), ".")
	var values []string
	for _, key := range storagetest.Keys(r.t, r.store.Client(), "cs:domain:*") {
		if strings.HasSuffix(key, ":"+name) {
			record := r.store.Client().Get(ctx, key).Val()
			_, rest, _ := strings.Cut(record, `"token":"`)
			token, _, _ := strings.Cut(rest, `"`)
			values = append(values, domain.Challenge(name, token).Value)
		}
	}
	return values, nil
}

// domain is the path of a custom domain of the tenant, with what follows it.
func (h *harness) domain(name, rest string) string {
	return "/v1/tenants/" + h.tenant + "/domains/" + name + rest
}

// addDomain adds a domain for hello.
func (h *harness) addDomain(t *testing.T, name string) domain.Domain {
	t.Helper()
	return ok[domain.Domain](t, h.call(t, "PUT", h.domain(name, ""), `{"namespace":"payments","function":"hello"}`), http.StatusCreated)
}

// verified adds a domain and has it verified.
func (h *harness) verified(t *testing.T, z *zone, name string) domain.Domain {
	t.Helper()
	z.set(h.addDomain(t, name).Record, h.domainRecord(t, name).Value)
	d := ok[domain.Domain](t, h.call(t, "POST", h.domain(name, ":verify"), ""), http.StatusOK)
	if d.State != domain.Verified {
		t.Fatalf("verify: got %+v, want it verified", d)
	}
	return d
}

func (h *harness) domainRecord(t *testing.T, name string) domain.DNSRecord {
	t.Helper()
	return ok[domain.Domain](t, h.call(t, "GET", h.domain(name, ""), ""), http.StatusOK).Record
}

// function makes hello with a version.
func (h *harness) function(t *testing.T) {
	t.Helper()
	h.create(t)
	h.deploy(t, "export default () => 1", "")
}

// serves waits until the host is one of the function, or one of the API.
func (h *harness) serves(t *testing.T, host string, want bool) {
	t.Helper()
	storagetest.Eventually(t, func() bool {
		before := h.engine.count()
		h.call(t, "GET", "/healthz", "", "Host", host)
		return (h.engine.count() > before) == want
	})
}

func TestDomainsOfATenant(t *testing.T) {
	t.Parallel()
	z := &zone{}
	h := startDomains(t, embedded(t), z)
	h.function(t)
	name := "shop." + customZone
	added := h.addDomain(t, strings.ToUpper(name)+".")
	if added.Domain != name || added.State != domain.Pending || added.Alias != api.DefaultAlias || added.Record.Name != "_sous-challenge."+name {
		t.Errorf("got %+v, want a pending domain %s for prod", added, name)
	}
	if d := h.addDomain(t, "b%C3%BCcher."+customZone); d.Domain != "xn--bcher-kva."+customZone {
		t.Errorf("got %s for an international name, want its ASCII form", d.Domain)
	}
	p := h.call(t, "POST", h.domain(name, ":verify"), "").refused(t, 409, api.CodeDomainUnverified)
	if !strings.Contains(p.Detail, added.Record.Name) || !strings.Contains(p.Detail, added.Record.Value) || !strings.Contains(p.Detail, "no TXT record") {
		t.Errorf("got %q, want the record that was looked for, and that none was found", p.Detail)
	}
	if want := []string{added.Record.Name + "."}; !slices.Equal(z.asked, want) {
		t.Errorf("got lookups of %q, want %q: a name without a final dot is also looked up in the search domains", z.asked, want)
	}
	z.set(added.Record, "sous-domain-verification=of-another-tenant")
	p = h.call(t, "POST", h.domain(name, ":verify"), "").refused(t, 409, api.CodeDomainUnverified)
	if !strings.Contains(p.Detail, "of-another-tenant") {
		t.Errorf("got %q, want the value that was found", p.Detail)
	}
	z.set(added.Record, "x", added.Record.Value)
	a := h.call(t, "POST", h.domain(name, ":verify"), "")
	if d := ok[domain.Domain](t, a, 200); d.State != domain.Verified || a.header.Get("Etag") != `"1"` {
		t.Errorf("got %+v with ETag %s, want it verified at revision 1", d, a.header.Get("Etag"))
	}
	h.call(t, "PUT", h.domain(name, ""), `{"namespace":"payments","function":"hello","version":1}`, "If-Match", `"7"`).refused(t, 412, api.CodePreconditionFailed)
	h.call(t, "PUT", h.domain(name, ""), `{"namespace":"payments","function":"hello","version":1}`, "If-None-Match", "*").refused(t, 412, api.CodePreconditionFailed)
	d := ok[domain.Domain](t, h.call(t, "PUT", h.domain(name, ""), `{"namespace":"payments","function":"hello","version":1}`, "If-Match", `"1"`), 200)
	if d.State != domain.Verified || d.Version != 1 || d.Alias != "" {
		t.Errorf("got %+v after a change of the target, want version 1, still verified", d)
	}
	for body, code := range map[string]api.Code{
		`{"namespace":"payments","function":"ghost"}`:                            api.CodeFunctionNotFound,
		`{"namespace":"payments","function":"hello","alias":"ghost"}`:            api.CodeAliasNotFound,
		`{"namespace":"payments","function":"hello","version":99}`:               api.CodeVersionNotFound,
		`{"namespace":"payments","function":"hello","alias":"a","version":1}`:    api.CodeInvalid,
		`{"namespace":"payments"}`:                                               api.CodeInvalid,
		`{"namespace":"payments","function":"hello","state":"verified"}`:         api.CodeInvalid,
		`{"namespace":"payments","function":"../hello"}`:                         api.CodeValidationName,
		`{"namespace":"payments","function":"hello","token":"chosen-by-caller"}`: api.CodeInvalid,
	} {
		a := h.call(t, "PUT", h.domain(name, ""), body)
		if p := a.refused(t, a.status, code); a.status < 400 {
			t.Errorf("%s: got %+v, want %s", body, p, code)
		}
	}
	var names []string
	for path := "/v1/tenants/" + h.tenant + "/domains?limit=1"; path != ""; {
		page := ok[api.Page[domain.Domain]](t, h.call(t, "GET", path, ""), 200)
		for _, d := range page.Items {
			names = append(names, d.Domain)
		}
		path = ""
		if page.NextCursor != nil {
			path = "/v1/tenants/" + h.tenant + "/domains?limit=1&cursor=" + *page.NextCursor
		}
	}
	if want := []string{name, "xn--bcher-kva." + customZone}; !slices.Equal(names, want) {
		t.Errorf("got domains %q, want %q", names, want)
	}
	h.call(t, "DELETE", h.domain(name, ""), "", "If-Match", `"1"`).refused(t, 412, api.CodePreconditionFailed)
	if a := h.call(t, "DELETE", h.domain(name, ""), ""); a.status != 204 {
		t.Errorf("DELETE: got %d, want 204", a.status)
	}
	h.call(t, "GET", h.domain(name, ""), "").refused(t, 404, api.CodeDomainNotFound)
	h.call(t, "POST", h.domain(name, ":verify"), "").refused(t, 404, api.CodeDomainNotFound)
}

// No tenant gets a name of the server, of this machine, or one that is no domain.
func TestDomainsThatNoTenantGets(t *testing.T) {
	t.Parallel()
	h := startDomains(t, embedded(t), &zone{}, withFunctionDomain, func(c *controlplane.Config) { c.ReservedDomains = []string{"api.platform.example"} })
	h.function(t)
	for name, code := range map[string]api.Code{
		"api.platform.example": api.CodeDomainReserved, "x.API.platform.example.": api.CodeDomainReserved, "hello--payments--t-acme01.api.platform.example": api.CodeDomainReserved,
		functionDomain: api.CodeValidationName, "hello--payments--t-acme01." + functionDomain: api.CodeValidationName, // below localhost
		"localhost": api.CodeValidationName, "a.localhost": api.CodeValidationName, "127.0.0.1": api.CodeValidationName, "%5B::1%5D": api.CodeValidationName, "com": api.CodeValidationName,
		"0x7f.1": api.CodeValidationName, "shop.example.com:80": api.CodeValidationName, "*.example.com": api.CodeValidationName, "_x.example.com": api.CodeValidationName,
		"a..example.com": api.CodeValidationName, strings.Repeat("a.", 125) + "com": api.CodeValidationName, "%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1": api.CodeValidationName,
	} {
		for _, request := range [][3]string{{"PUT", "", `{"namespace":"payments","function":"hello"}`}, {"POST", ":verify", ""}} {
			a := h.call(t, request[0], h.domain(name, request[1]), request[2])
			if request[0] == "POST" && a.status == 405 { // a colon in the name makes it another path
				continue
			}
			if a.status != 400 && a.status != 409 {
				t.Errorf("%s %s: got %d %s, want a refusal", request[0], name, a.status, a.body)
				continue
			}
			a.refused(t, a.status, code)
		}
	}
	other := startDomains(t, embedded(t), &zone{}, func(c *controlplane.Config) { c.FunctionDomain = "apps.example.org" })
	other.function(t)
	for _, name := range []string{"apps.example.org", "hello--payments--t-acme01.apps.example.org", "a.b.apps.example.org"} {
		other.call(t, "PUT", other.domain(name, ""), `{"namespace":"payments","function":"hello"}`).refused(t, 409, api.CodeDomainReserved)
	}
	other.addDomain(t, "example.org") // above it: the tenant that controls the zone may have it
}

// A custom domain is a host of its function: all paths are the function's, and the origin is its
// own. Hosts that look like it are hosts of the API.
func TestCustomDomainsServeTheirFunction(t *testing.T) {
	t.Parallel()
	z := &zone{}
	h := startDomains(t, embedded(t), z)
	h.function(t)
	name := "shop." + customZone
	pending := h.addDomain(t, name)
	h.serves(t, name, false) // pending: a host of the API
	z.set(pending.Record, pending.Record.Value)
	ok[domain.Domain](t, h.call(t, "POST", h.domain(name, ":verify"), ""), 200)
	h.serves(t, name, true)
	for _, host := range []string{name, strings.ToUpper(name), name + ":8080", name + ".", name + ".:443"} {
		for _, path := range []string{"/", "/v1/tenants", "/healthz", "/docs", "/openapi.json", h.web("/x"), h.domain(name, "")} {
			before := h.engine.count()
			a := h.call(t, "GET", path, "", "Host", host, "Cookie", "a=1; b=2", "Service-Worker", "script")
			inv := h.engine.last(t)
			if a.status != 200 || h.engine.count() != before+1 || inv.Function != "hello" || inv.Tenant != h.tenant || inv.Ref != (api.Ref{Alias: "prod"}) {
				t.Fatalf("%s%s: got %d and %s/%s at %v, want 200 of hello", host, path, a.status, inv.Namespace, inv.Function, inv.Ref)
			}
			if e := h.event(t); e.RawPath != path || e.Path != path || !slices.Equal(e.Cookies, []string{"a=1", "b=2"}) {
				t.Errorf("%s%s: got %+v, want the path and the cookies as they were sent", host, path, e)
			}
			if got := a.header.Get("Content-Security-Policy"); got != "" {
				t.Errorf("%s%s: got the policy %q, want none: the origin is the function's", host, path, got)
			}
		}
	}
	before := h.engine.count()
	for _, host := range []string{
		"x" + name, "www." + name, name + ".evil.example", customZone, "shop-" + customZone, "xn--shp-tna." + customZone, "_sous-challenge." + name, "shop%2e" + customZone, "127.0.0.1", "localhost",
	} {
		if a := h.call(t, "GET", "/healthz", "", "Host", host); a.status != 200 {
			t.Errorf("%s/healthz: got %d, want 200 of the API", host, a.status)
		}
	}
	for _, host := range []string{name + "..", name + "..:443", "shop.." + customZone} {
		h.call(t, "GET", "/healthz", "", "Host", host).refused(t, http.StatusNotFound, api.CodeRouteNotFound)
	}
	if h.engine.count() != before {
		t.Error("a host that only looks like the domain ran the function, want the API")
	}
	// Another version, and the end.
	ok[domain.Domain](t, h.call(t, "PUT", h.domain(name, ""), `{"namespace":"payments","function":"hello","version":1}`), 200)
	storagetest.Eventually(t, func() bool {
		h.call(t, "GET", "/", "", "Host", name)
		return h.engine.last(t).Ref == api.Ref{Version: 1}
	})
	h.call(t, "DELETE", h.domain(name, ""), "")
	h.serves(t, name, false)
}

// Hosts that are no custom domains cost no command of the store.
func TestUnknownHostsCostNoCommand(t *testing.T) {
	t.Parallel()
	z := &zone{}
	h := startDomains(t, storagetest.Open(t, storage.Config{URL: storagetest.Redis(t).URL}), z)
	h.function(t)
	h.verified(t, z, "shop."+customZone)
	h.serves(t, "shop."+customZone, true)
	calls := func() int64 {
		sum := int64(0)
		for _, n := range storagetest.Calls(t, h.store.Client()) {
			sum += n
		}
		return sum
	}
	before := calls()
	const n = 300
	for i := range n {
		h.call(t, "GET", "/openapi.json", "", "Host", fmt.Sprintf("h%d.localhost", i))
	}
	if spent := calls() - before; spent > n/10 { // a few of the background
		t.Errorf("got %d commands for %d requests with hosts that do not exist, want none for each", spent, n)
	}
}

// What one replica adds and removes, the others serve and do not serve.
func TestDomainsOnOtherReplicas(t *testing.T) {
	t.Parallel()
	store, z := embedded(t), &zone{}
	one, two := startDomains(t, store, z), startDomains(t, store, z)
	one.function(t)
	name := "shop." + customZone
	one.verified(t, z, name)
	two.serves(t, name, true)
	late := startDomains(t, store, z)
	before := late.engine.count()
	late.call(t, "GET", "/v1/whoami", "", "Host", name)
	if late.engine.count() != before+1 {
		t.Error("the first request to a new replica was one of the API, want the function")
	}
	one.call(t, "DELETE", one.domain(name, ""), "")
	two.serves(t, name, false)
	late.serves(t, name, false)
}

// Of two tenants, the one whose record is in the zone has the domain.
func TestTenantsCompeteForADomain(t *testing.T) {
	t.Parallel()
	store, z := embedded(t), &zone{}
	one, two := startDomains(t, store, z), startDomains(t, store, z)
	one.function(t)
	two.function(t)
	name := "shop." + customZone
	mine, theirs := one.addDomain(t, name), two.addDomain(t, name)
	z.set(mine.Record, mine.Record.Value, theirs.Record.Value)
	answers := storagetest.Concurrently(16, func(i int) error {
		h := []*harness{one, two}[i%2]
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, h.URL+h.domain(name, ":verify"), nil)
		if err != nil {
			return err
		}
		response, err := h.client.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != 200 {
			return fmt.Errorf("%d", response.StatusCode)
		}
		return nil
	})
	states := []string{}
	for _, h := range []*harness{one, two} {
		states = append(states, ok[domain.Domain](t, h.call(t, "GET", h.domain(name, ""), ""), 200).State)
	}
	slices.Sort(states)
	if !slices.Equal(states, []string{domain.Pending, domain.Verified}) {
		t.Errorf("got states %v after %v, want exactly one verified", states, answers)
	}
	// Only the record of the second is left: it takes the domain over, on all replicas.
	z.set(mine.Record, theirs.Record.Value)
	ok[domain.Domain](t, two.call(t, "POST", two.domain(name, ":verify"), ""), 200)
	storagetest.Eventually(t, func() bool {
		one.call(t, "GET", "/", "", "Host", name)
		return one.engine.count() > 0 && one.engine.last(t).Tenant == two.tenant
	})
	z.set(mine.Record, theirs.Record.Value, mine.Record.Value)
	one.call(t, "POST", one.domain(name, ":verify"), "").refused(t, 409, api.CodeDomainTaken)
}

// A zone that does not answer holds few lookups of a tenant, and none of others. The error names no
// server.
func TestLookupsThatFail(t *testing.T) {
	t.Parallel()
	z := &zone{err: &net.DNSError{Err: "i/o timeout", Name: "x", Server: "10.9.8.7:53", IsTimeout: true}}
	store := embedded(t)
	h, other := startDomains(t, store, z), startDomains(t, store, z)
	h.function(t)
	other.function(t)
	name := "shop." + customZone
	h.addDomain(t, name)
	a := h.call(t, "POST", h.domain(name, ":verify"), "")
	p := a.refused(t, 503, api.CodeDomainLookup)
	if strings.Contains(string(a.body), "10.9.8.7") || !strings.Contains(p.Detail, "_sous-challenge."+name) || a.header.Get("Retry-After") == "" {
		t.Errorf("got %q and Retry-After %q, want the record, a time, and no address", p.Detail, a.header.Get("Retry-After"))
	}
	z.mu.Lock()
	z.gate = make(chan struct{})
	z.mu.Unlock()
	statuses := make(chan int, 10)
	var running sync.WaitGroup
	for range cap(statuses) {
		running.Go(func() {
			request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, h.URL+h.domain(name, ":verify"), nil)
			if err == nil {
				var response *http.Response
				response, err = h.client.Do(request)
				if err == nil {
					_ = response.Body.Close()
					statuses <- response.StatusCode
				}
			}
			if err != nil {
				t.Errorf("Do: %v", err)
			}
		})
	}
	refused := 0
	for range 6 { // those beyond four lookups at a time
		if <-statuses == 429 {
			refused++
		}
	}
	close(z.gate)
	running.Wait()
	if refused != 6 {
		t.Errorf("got %d of 10 verifications refused while four look up, want 6", refused)
	}
}

// startDomains starts a server with API keys, since without them it answers on loopback names only.
// Requests carry the key of an administrator, unless they are for another host.
func startDomains(t *testing.T, store *storage.Store, r domains.Resolver, change ...func(*controlplane.Config)) *harness {
	t.Helper()
	h := startOn(t, store, append(change, func(c *controlplane.Config) { c.Auth, c.DomainResolver = access.Keys, r })...)
	now := time.Now().UnixMilli()
	text, id, err := api.NewKeySecret(now, rand.Reader)
	if err != nil {
		t.Fatalf("NewKeySecret: %v", err)
	}
	record := api.Key{ID: id, Tenant: h.tenant, Name: "test", Roles: []string{api.RoleAdmin}, CreatedAtMS: now, CreatedBy: "test"}
	if err := storeaccess.NewAPIKeys(store).Create(t.Context(), record, api.KeyDigest(text)); err != nil {
		t.Fatalf("Create: %v", err)
	}
	h.client = &http.Client{Transport: bearer{h.client.Transport, text}, CheckRedirect: h.client.CheckRedirect}
	return h
}

// bearer adds a key to the requests for the API.
type bearer struct {
	next http.RoundTripper
	key  string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Host == r.URL.Host || r.Host == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.key)
	}
	return b.next.RoundTrip(r)
}

// dnsServer answers queries for TXT records over UDP, as a server of the DNS does.
type dnsServer struct {
	conn net.PacketConn

	mu      sync.Mutex
	records map[string][]string // by name with a final dot
	queries []string
	silent  bool
}

func startDNS(t *testing.T) *dnsServer {
	t.Helper()
	var listen net.ListenConfig
	conn, err := listen.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("ListenPacket: %v", err)
	}
	s := &dnsServer{conn: conn, records: map[string][]string{}}
	var running sync.WaitGroup
	running.Go(s.serve)
	t.Cleanup(func() { _ = conn.Close(); running.Wait() })
	return s
}

func (s *dnsServer) serve() {
	buffer := make([]byte, 2048)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := s.answer(buffer[:n]); reply != nil {
			_, _ = s.conn.WriteTo(reply, from)
		}
	}
}

func (s *dnsServer) answer(query []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 || s.silent {
		return nil
	}
	q := m.Questions[0]
	s.queries = append(s.queries, q.Name.String())
	values := s.records[q.Name.String()]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired, RecursionAvailable: true},
		Questions: m.Questions,
	}
	if len(values) == 0 || q.Type != dnsmessage.TypeTXT {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, v := range values {
		var parts []string // of a record: each has at most 255 bytes
		for len(v) > 20 {
			parts, v = append(parts, v[:20]), v[20:]
		}
		reply.Answers = append(reply.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassINET, TTL: 1},
			Body:   &dnsmessage.TXTResource{TXT: append(parts, v)},
		})
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// The resolver of the server asks a real DNS server for the record, and for nothing else.
func TestDomainsAreVerifiedByTheDNS(t *testing.T) {
	t.Parallel()
	dns := startDNS(t)
	h := startDomains(t, embedded(t), domains.NewResolver(dns.conn.LocalAddr().String()))
	h.function(t)
	name := "shop." + customZone
	record := h.addDomain(t, name).Record
	h.call(t, "POST", h.domain(name, ":verify"), "").refused(t, 409, api.CodeDomainUnverified)
	dns.mu.Lock()
	dns.records[record.Name+"."] = []string{"v=spf1 -all", record.Value}
	dns.mu.Unlock()
	ok[domain.Domain](t, h.call(t, "POST", h.domain(name, ":verify"), ""), 200)
	h.serves(t, name, true)
	dns.mu.Lock()
	defer dns.mu.Unlock()
	for _, asked := range dns.queries {
		if asked != record.Name+"." {
			t.Errorf("got a query for %s, want only those for %s", asked, record.Name)
		}
	}
}

// A server of the DNS that is silent ends the verification, not the request's connection.
func TestSilentDNS(t *testing.T) {
	t.Parallel()
	dns := startDNS(t)
	dns.mu.Lock()
	dns.silent = true
	dns.mu.Unlock()
	h := startDomains(t, embedded(t), domains.NewResolver(dns.conn.LocalAddr().String()))
	h.function(t)
	name := "shop." + customZone
	h.addDomain(t, name)
	begin := time.Now()
	h.call(t, "POST", h.domain(name, ":verify"), "").refused(t, 503, api.CodeDomainLookup)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("the answer took %v, want about the 5 s of a lookup", took)
	}
}
