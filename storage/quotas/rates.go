package quotas

import (
	"context"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/quota"
	"github.com/codesous/sous/storage"
)

const (
	// leasePause is the least time between two leases that calls wait for, where the store had
	// too little at the last one.
	leasePause = 100 * time.Millisecond
	// leaseWithin bounds a lease that calls wait for.
	leaseWithin = 250 * time.Millisecond
	// A waiting call leases for those after it as well: a part of the limit of a period, that of
	// 100 ms for calls a second.
	ahead    = 0.1
	aheadDay = 0.001
	// leastDebt is the least bound of a debt of a rate per day, in bytes.
	leastDebt = 64 << 20
	// keepFor is how many intervals an unused share is kept.
	keepFor = 5
)

// rates are a tenant's shares on this replica.
type rates struct {
	waiting [rateCount]atomic.Int64 // amounts of calls that wait for a lease
	leasing sync.Mutex              // held during a lease

	mu     sync.Mutex
	leased int64 // ms of the last lease, or of the last try
	failed bool  // the last lease, so that the present interval is no measure of a share
	shares [rateCount]share
}

// rateCount is the number of rates.
const rateCount = 7

// rateIndex returns the place of a rate among the shares.
func rateIndex(q quota.Name) int {
	switch q {
	case quota.Calls:
		return 0
	case quota.CPU:
		return 1
	case quota.Memory:
		return 2
	case quota.Egress:
		return 3
	case quota.EgressDay:
		return 4
	case quota.RecordBytes:
		return 5
	}
	return 6
}

// share is a replica's part of one rate. CPU and memory are counted in thousandths.
type share struct {
	tokens  float64 // negative: a debt
	spent   float64 // since the last lease
	pace    float64 // spent in the last interval
	recent  float64 // granted since the last interval
	granted float64 // in the last interval in which the store answered
	left    float64 // in the store after the last lease
	known   bool    // left is known
	quiet   int     // intervals without use
	warned  bool
}

// unit returns how many tokens one of the quota's unit is.
func unit(q quota.Name) float64 {
	if q == quota.CPU || q == quota.Memory {
		return 1000
	}
	return 1
}

// spend is an amount of one rate that a caller takes now. With 0, it requires only that there is no debt.
type spend struct {
	quota  quota.Name
	amount float64
}

var ofCall = []spend{{quota.Calls, 1}, {quota.CPU, 0}, {quota.Memory, 0}}

// Call admits a call of a function. CodeTenantRate. While nothing is limited it costs the
// lookup of the tenant.
func (k *Keeper) Call(ctx context.Context, name string) error {
	return k.admit(ctx, name, ofCall)
}

// Egress admits a connection of a function to another server. CodeTenantRate.
func (k *Keeper) Egress(ctx context.Context, name string) error {
	return k.admit(ctx, name, []spend{{quota.Egress, 0}, {quota.EgressDay, 0}})
}

// Records returns CodeTenantRate if logs of the tenant's activations may not be stored.
func (k *Keeper) Records(ctx context.Context, name string) error {
	return k.admit(ctx, name, []spend{{quota.RecordBytes, 0}})
}

// Charge adds what a call has used, in the unit of the quota; CPU and memory in thousandths.
func (k *Keeper) Charge(name string, q quota.Name, amount int64) {
	t := k.tenant(name)
	limits := t.limits.Load()
	if amount <= 0 || limits == nil || limits.rates[rateIndex(q)] < 0 {
		return
	}
	t.rates.mu.Lock()
	defer t.rates.mu.Unlock()
	s := &t.rates.shares[rateIndex(q)]
	s.tokens -= float64(amount)
	s.spent += float64(amount)
}

// Overdrawn returns CodeTenantRate if this replica has charged the tenant with much more of a rate
// than it was granted. It reads the memory of the replica only: it sends no command and does not
// wait for a lease.
//
// A debt up to the bound is no reason to refuse, since the next lease may pay it. The bound is the
// limit of one period for a rate per second or per minute: a tenant may use as much at once, if it
// has saved it up. For a rate per day the bound is a hundredth of the limit, and at least
// leastDebt, but not more than the limit.
func (k *Keeper) Overdrawn(name string, q quota.Name) error {
	t := k.tenant(name)
	limits := t.limits.Load()
	if limits == nil || limits.rates[rateIndex(q)] < 0 {
		return nil
	}
	t.rates.mu.Lock()
	debt := -t.rates.shares[rateIndex(q)].tokens
	t.rates.mu.Unlock()
	if debt <= mostDebt(q, limits.rates[rateIndex(q)]) {
		return nil
	}
	return k.refuseRate(t, limits, spend{q, 0})
}

// mostDebt returns the bound of Overdrawn, in tokens.
func mostDebt(q quota.Name, limit int64) float64 {
	if q.Period() == day {
		limit = min(limit, max(limit/100, leastDebt))
	}
	return float64(limit) * unit(q)
}

// admit takes all spends, or none.
func (k *Keeper) admit(ctx context.Context, name string, spends []spend) error {
	t := k.tenant(name)
	limits := k.limitsOf(ctx, t)
	short := t.rates.take(limits, spends)
	if len(short) == 0 {
		return nil
	}
	t.rates.await(short, 1)
	t.rates.leasing.Lock()
	defer t.rates.leasing.Unlock()
	defer t.rates.await(short, -1)
	// Another call may have leased for this one too.
	still := t.rates.take(limits, spends)
	if len(still) == 0 {
		return nil
	}
	if k.mayLease(t, still) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseWithin)
		defer cancel()
		_ = k.lease(ctx, []*tenant{t}, true) // after a failure the last share is granted again
		still = t.rates.take(limits, spends)
		if len(still) == 0 {
			return nil
		}
	}
	return k.refuseRate(t, limits, still[0])
}

// await adds, or with a sign of -1 removes, what a call waits for.
func (r *rates) await(short []spend, sign int64) {
	for _, s := range short {
		r.waiting[rateIndex(s.quota)].Add(sign * int64(math.Ceil(max(1, s.amount))))
	}
}

// take takes all spends from the shares, or none and returns those that are short.
func (r *rates) take(limits *limitSet, spends []spend) (short []spend) {
	limited := false
	for _, s := range spends {
		limited = limited || limits.rates[rateIndex(s.quota)] >= 0
	}
	if !limited {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range spends {
		if limits.rates[rateIndex(s.quota)] < 0 {
			continue
		}
		if has := r.shares[rateIndex(s.quota)].tokens; has < s.amount || has <= 0 {
			short = append(short, s)
		}
	}
	if len(short) > 0 {
		return short
	}
	for _, s := range spends {
		if limits.rates[rateIndex(s.quota)] >= 0 {
			share := &r.shares[rateIndex(s.quota)]
			share.tokens -= s.amount
			share.spent += s.amount
		}
	}
	return nil
}

// mayLease reports whether a call that is short may ask the store now: the last lease is old
// enough, or the store has, as far as is known, what the call lacks.
func (k *Keeper) mayLease(t *tenant, short []spend) bool {
	t.rates.mu.Lock()
	defer t.rates.mu.Unlock()
	since := k.store.NowMS() - t.rates.leased
	if since >= leasePause.Milliseconds() || since < 0 {
		return true
	}
	if t.rates.failed {
		return false
	}
	for _, s := range short {
		if share := &t.rates.shares[rateIndex(s.quota)]; share.known && share.left < max(1, s.amount-share.tokens) {
			return false
		}
	}
	return true
}

// refuseRate returns the error for a rate that is used up. A replica that has leased nothing yet,
// because the store does not answer, does not know whether it is: CodeStoreUnavailable.
func (k *Keeper) refuseRate(t *tenant, limits *limitSet, short spend) error {
	q, limit := short.quota, limits.rates[rateIndex(short.quota)]
	t.rates.mu.Lock()
	share, failed := t.rates.shares[rateIndex(q)], t.rates.failed
	t.rates.mu.Unlock()
	if failed && !share.known {
		return api.Errorf(api.CodeStoreUnavailable, "the store does not answer: lease %s", q)
	}
	k.metrics.refusals.WithLabelValues(string(q)).Inc()
	now := k.store.Now()
	wait := leasePause
	switch {
	case q.Period() == day:
		wait = now.UTC().Truncate(day).Add(day).Sub(now)
	case limit > 0:
		missing := max(1, short.amount-share.tokens) / unit(q)
		wait = max(wait, time.Duration(missing/float64(limit)*float64(q.Period())))
	default:
		wait = q.Period()
	}
	used := limit
	if share.known {
		used = max(0, limit-int64(max(0, share.left)/unit(q)))
	}
	e := api.Errorf(api.CodeTenantRate, "the tenant's limit of %s %s is reached", api.CountText(limit), q)
	e.Quota = &api.QuotaUse{Scope: "tenant", Unit: string(q), Limit: limit, Used: used, RetryAfterMS: wait.Milliseconds()}
	e.RetryAfter = wait
	return e
}

const day = 24 * time.Hour

// pending reports whether the shares must be leased, returned or settled.
func (r *rates) pending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.shares {
		if s := &r.shares[i]; s.tokens != 0 || s.spent != 0 {
			return true
		}
	}
	return false
}

// leaseAll leases the shares of the next interval.
func (k *Keeper) leaseAll(ctx context.Context, tenants []*tenant) error {
	for _, t := range tenants {
		t.rates.leasing.Lock()
	}
	defer func() {
		for _, t := range tenants {
			t.rates.leasing.Unlock()
		}
	}()
	return k.lease(ctx, tenants, false)
}

// ask is an amount of one rate that a lease asks for.
type ask struct {
	quota  quota.Name
	limit  float64
	amount float64
}

// lease asks the store for shares, in one round trip. The caller holds leasing of all tenants.
// urgent reports that calls wait. After a failure each tenant is granted its last share again,
// in proportion to the time since.
func (k *Keeper) lease(ctx context.Context, tenants []*tenant, urgent bool) error {
	now := k.store.NowMS()
	var calls []storage.ScriptCall
	var of []*tenant
	var asked [][]ask
	for _, t := range tenants {
		asks := t.rates.asks(t.limits.Load(), urgent)
		if len(asks) == 0 {
			continue
		}
		calls = append(calls, leaseCall(k.store.Keys().QuotaRates(t.name), now, asks))
		of, asked = append(of, t), append(asked, asks)
	}
	replies, errs := k.store.ScriptEach(ctx, storage.ScriptQuotaLease, calls)
	var failed error
	for i, t := range of {
		if errs[i] != nil {
			failed = errs[i]
			k.metrics.failed.Inc()
			t.rates.regrant(now, k.interval)
			continue
		}
		k.metrics.leases.Inc()
		k.granted(t, asked[i], replies[i], now, urgent)
	}
	return failed
}

// leaseCall returns the call of the script that leases asks.
func leaseCall(key string, now int64, asks []ask) storage.ScriptCall {
	args := []any{now}
	for _, a := range asks {
		period, start := a.quota.Period(), ""
		if period == day {
			start = strconv.FormatInt(now-now%day.Milliseconds(), 10)
		}
		args = append(args, string(a.quota), strconv.FormatFloat(a.limit, 'f', 0, 64), period.Milliseconds(), start, strconv.FormatFloat(a.amount, 'f', 0, 64))
	}
	return storage.ScriptCall{Keys: []string{key}, Args: args}
}

// asks returns what a lease asks for: enough for what the last interval has used and a half
// more, and the debts. A share that was not used for some intervals is returned.
func (r *rates) asks(limits *limitSet, urgent bool) (asks []ask) {
	if limits == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range quota.Rates() {
		i := rateIndex(q)
		s, waiting := &r.shares[i], float64(r.waiting[i].Load())
		limit := float64(limits.rates[i]) * unit(q)
		switch {
		case limit < 0:
			*s = share{}
		case urgent && waiting > 0:
			asks = append(asks, ask{q, limit, max(0, math.Ceil(waiting+inAdvance(q, limit)-s.tokens))})
		case !urgent && (s.tokens != 0 || s.spent != 0):
			asks = append(asks, ask{q, limit, s.next(r.failed)})
		}
	}
	return asks
}

// inAdvance returns the part of a limit that a waiting call leases for those after it.
func inAdvance(q quota.Name, limit float64) float64 {
	if q.Period() == day {
		return limit * aheadDay
	}
	return limit * ahead * float64(time.Second) / float64(q.Period())
}

// next begins the next interval of a share and returns what it needs: a negative amount is
// returned to the store.
func (s *share) next(failed bool) float64 {
	s.pace, s.spent = s.spent, 0
	if s.recent > 0 && !failed {
		s.granted = s.recent
	}
	s.recent = 0
	s.quiet++
	if s.pace > 0 {
		s.quiet = 0
	}
	amount := math.Ceil(1.5*s.pace - s.tokens)
	switch {
	case s.quiet >= keepFor:
		return -math.Floor(s.tokens)
	case amount < 0 && -amount < 2*s.pace+1:
		return 0 // it will be used soon
	case amount < 0 && s.quiet > 0:
		return 0
	}
	return amount
}

// granted adds what the store granted, and warns if little is left.
func (k *Keeper) granted(t *tenant, asks []ask, reply any, now int64, urgent bool) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2*len(asks) {
		return // a reply of another release
	}
	t.rates.mu.Lock()
	defer t.rates.mu.Unlock()
	t.rates.leased, t.rates.failed = now, false
	for i, a := range asks {
		s := &t.rates.shares[rateIndex(a.quota)]
		grant, left := number(parts[2*i]), number(parts[2*i+1])
		s.tokens += grant
		s.recent += max(0, grant)
		s.left, s.known = left, true
		if s.quiet >= keepFor && !urgent {
			s.tokens = min(s.tokens, 0) // a fraction of a token
		}
		switch {
		case a.limit > 0 && left <= (1-warnAt)*a.limit && !s.warned:
			s.warned = true
			k.warn(t.name, a.quota, int64(a.limit/unit(a.quota)), int64((a.limit-left)/unit(a.quota)))
		case left > (1-warnAt)*a.limit*2:
			s.warned = false
		}
	}
}

func number(reply any) float64 {
	text, _ := reply.(string)
	n, _ := strconv.ParseFloat(text, 64) // of a script of this package
	return n
}

// regrant grants the last share again, for the time since the last lease or try.
func (r *rates) regrant(now int64, interval time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := min(1, max(0, float64(now-r.leased)/float64(interval.Milliseconds())))
	r.leased, r.failed = now, true
	for i := range r.shares {
		s := &r.shares[i]
		s.tokens = min(s.tokens+part*s.granted, max(s.tokens, s.granted))
	}
}

// warn logs that a quota is nearly used up.
func (k *Keeper) warn(tenant string, q quota.Name, limit, used int64) {
	k.metrics.warnings.WithLabelValues(string(q)).Inc()
	k.logger.Warn("a tenant has used 80% of a quota", zap.String("tenant", tenant), zap.String("quota", string(q)),
		zap.Int64("limit", limit), zap.Int64("used", used))
}
