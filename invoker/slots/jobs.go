package slots

import "math"

// Jobs counts the jobs that a worker runs, by tenant, so that those of one tenant leave room
// for those of others. The worker's mutex guards it.
type Jobs struct {
	slots, each int // of all tenants, and the part that one of them may have
	all         jobs
	tenants     map[string]*jobs // of those that have jobs
}

// jobs are the jobs of a tenant, or of all.
type jobs struct {
	busy int // have a slot, or wait for one
	held int // these, and those that are being settled
}

// NewJobs returns a Jobs of so many slots. A tenant gets as many of them as it may have of the
// places of the pool, mostOfTenant of places, and one at least.
func NewJobs(slots, mostOfTenant, places int) *Jobs {
	each := slots
	if places > 0 {
		each = max(1, int(math.Ceil(float64(slots)*float64(mostOfTenant)/float64(places))))
	}
	return &Jobs{slots: slots, each: min(each, slots), tenants: map[string]*jobs{}}
}

// Free returns how many further jobs of a tenant find a slot. Settling may take long if the
// store does not answer, so no more than twice the slots are held.
func (j *Jobs) Free(tenant string) int {
	free := min(j.slots-j.all.busy, 2*j.slots-j.all.held)
	if t := j.tenants[tenant]; t != nil {
		return min(free, j.each-t.busy, 2*j.each-t.held)
	}
	return min(free, j.each)
}

// Take counts a job that needs a slot.
func (j *Jobs) Take(tenant string) {
	t := j.tenants[tenant]
	if t == nil {
		t = &jobs{}
		j.tenants[tenant] = t
	}
	for _, of := range []*jobs{&j.all, t} {
		of.busy++
		of.held++
	}
}

// Release counts a job that needs its slot no more.
func (j *Jobs) Release(tenant string) {
	j.all.busy--
	j.tenants[tenant].busy--
}

// Done counts a job that is settled. It was released before.
func (j *Jobs) Done(tenant string) {
	j.all.held--
	t := j.tenants[tenant]
	t.held--
	if t.held == 0 {
		delete(j.tenants, tenant)
	}
}
