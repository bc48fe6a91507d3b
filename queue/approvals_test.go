package queue_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/agent"
	"github.com/codesous/sous/api/approval"
	"github.com/codesous/sous/api/approval/policy"
	"github.com/codesous/sous/api/event"
	"github.com/codesous/sous/queue"
	"github.com/codesous/sous/queue/approvals"
	"github.com/codesous/sous/storage"
	storeapprovals "github.com/codesous/sous/storage/approvals"
	"github.com/codesous/sous/storage/storagetest"
)

const finance = "role:finance"

// policy sets a policy of the tenant for the queue emails.
func (f *fixture) policy(t testing.TB, name string, change ...func(*policy.Rules)) {
	t.Helper()
	s := policy.Rules{Match: policy.Match{Queue: emails}}
	for _, c := range change {
		c(&s)
	}
	if _, _, err := f.Policies().PutPolicy(t.Context(), f.tenant, name, s, storeapprovals.Condition{}); err != nil {
		t.Fatalf("PutPolicy(%s): %v", name, err)
	}
}

func count(n int) func(*policy.Rules) {
	return func(s *policy.Rules) { s.Mode, s.Count = approval.ModeCount, n }
}

func voters(names ...string) func(*policy.Rules) {
	return func(s *policy.Rules) { s.Approvers = names }
}

func expiring(after time.Duration, then string) func(*policy.Rules) {
	return func(s *policy.Rules) { s.ExpiresAfterMS, s.OnExpiry = after.Milliseconds(), then }
}

// ballot is a vote of a key that has the roles.
func ballot(key string, approved bool, roles ...string) approvals.Ballot {
	return approvals.Ballot{Approved: approved, Key: key, Standings: []approvals.Standing{{Key: key, Roles: roles}}, Steers: true}
}

func (f *fixture) vote(t testing.TB, id string, b approvals.Ballot) error {
	t.Helper()
	_, err := approvals.New(f.store, f.Broker).Vote(t.Context(), f.tenant, id, b)
	return err
}

func (f *fixture) state(t testing.TB, id string, want api.JobState) {
	t.Helper()
	if j := f.get(t, id); j.State != want {
		t.Errorf("state of job %s: got %s, want %s", id, j.State, want)
	}
}

// TestAPolicyHoldsJobs: every way in is held, and runs after the votes that the policy asks for.
func TestAPolicyHoldsJobs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "money", count(2), voters(finance))
		added := f.add(t, job(`1`), job(`2`, func(j *api.NewJob) { j.RunAtMS = farAhead }))
		for _, j := range added {
			if j.State != api.JobHeld {
				t.Errorf("enqueue: got state %s, want held", j.State)
			}
		}
		if got := f.fetch(t, 2); len(got) != 0 {
			t.Errorf("fetch before the votes: got %d jobs, want none", len(got))
		}
		id := added[0].ID
		for _, tt := range []struct {
			key      string
			approved bool
			role     string
			code     api.Code
			state    api.JobState
		}{
			{"key_x", true, "role:sales", api.CodeApprovalDenied, api.JobHeld},
			{"key_a", true, finance, "", api.JobHeld},
			{"key_a", true, finance, "", api.JobHeld}, // a repeat
			{"key_a", false, finance, api.CodeJobState, api.JobHeld},
			{"key_b", true, finance, "", api.JobPending},
			{"key_b", true, finance, "", api.JobPending},
			{"key_c", true, finance, api.CodeJobState, api.JobPending},
		} {
			if err := f.vote(t, id, ballot(tt.key, tt.approved, tt.role)); api.ErrorCode(err) != tt.code {
				t.Errorf("vote of %s: got %v, want code %q", tt.key, err, tt.code)
			}
			f.state(t, id, tt.state)
		}
		if got := f.fetch(t, 2); len(got) != 1 || got[0].ID != id || !f.ack(t, got[0], "").OK {
			t.Errorf("fetch after the votes: got %+v, want job %s", got, id)
		}
		if err := f.vote(t, added[1].ID, ballot("key_a", false, finance)); err != nil {
			t.Errorf("rejection: got %v, want no error", err)
		}
		f.state(t, added[1].ID, api.JobDead)
	})
}

// TestNoWayAroundAnApproval: neither a retry, a move, a dependency nor the plain approval of an operator
// lets a job run that a policy holds; a job that was approved is not asked for again.
func TestNoWayAroundAnApproval(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "money", voters(finance))
		id := f.add(t, job(`1`))[0].ID
		if _, err := f.Approve(t.Context(), f.tenant, id); api.ErrorCode(err) != api.CodeApprovalDenied {
			t.Errorf("Approve without a standing: got %v, want CodeApprovalDenied", err)
		}
		for name, end := range map[string]func() error{
			"reject": func() error { return f.vote(t, id, ballot("key_a", false, finance)) },
			"cancel": func() error { return second(f.Cancel(t.Context(), f.tenant, id)) },
		} {
			if err := end(); err != nil {
				t.Fatalf("%s: got %v, want no error", name, err)
			}
			if err := second(f.Retry(t.Context(), f.tenant, id)); err != nil {
				t.Fatalf("Retry: %v", err)
			}
			f.state(t, id, api.JobHeld)
		}
		if err := f.vote(t, id, ballot("key_a", true, finance)); err != nil {
			t.Fatalf("vote: %v", err)
		}
		if out := f.fail(t, f.fetch(t, 1)[0], func(j *api.JobFail) { j.Fatal = true }); out.State != api.JobDead {
			t.Fatalf("fail: got %+v, want a dead job", out)
		}
		if n, err := f.Redrive(t.Context(), queue.Redrive{Tenant: f.tenant, Namespace: namespace, Queue: emails}); err != nil || n != 1 {
			t.Fatalf("Redrive: got %d, error %v, want 1", n, err)
		}
		f.state(t, id, api.JobPending)

		f.policy(t, "other", func(s *policy.Rules) { s.Match.Queue = "safe" }, voters(finance))
		added, err := f.Enqueue(t.Context(), queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: "unsafe", Jobs: []api.NewJob{{}}})
		if err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		moved := added[0].ID
		if _, err := f.Move(t.Context(), f.tenant, moved, "safe"); err != nil {
			t.Fatalf("Move: %v", err)
		}
		f.state(t, moved, api.JobHeld)
		if _, err := f.Move(t.Context(), f.tenant, moved, "unsafe"); err != nil {
			t.Fatalf("Move back: %v", err)
		}
		if err := f.vote(t, moved, ballot("key_z", true)); api.ErrorCode(err) != api.CodeApprovalDenied {
			t.Errorf("vote in another queue: got %v, want CodeApprovalDenied", err)
		}
	})
}

// TestDependentsAreHeld: a job that waited for another one is held then.
func TestDependentsAreHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		first := f.add(t, job(`1`))[0].ID
		f.policy(t, "money", voters(finance), expiring(time.Hour, approval.OnExpiryReject))
		next := f.add(t, job(`2`, func(j *api.NewJob) { j.DependsOn = []string{first} }))[0].ID
		f.state(t, next, api.JobWaiting)
		f.clock.advance(2 * time.Hour)
		if out := f.ack(t, f.fetch(t, 1)[0], ""); !out.OK {
			t.Fatalf("ack: got %+v, want success", out)
		}
		f.settle(t)
		f.state(t, next, api.JobHeld) // its time begins now
		f.clock.advance(time.Hour)
		f.settle(t)
		f.state(t, next, api.JobDead)
	})
}

// TestAllApproversVoteOnce: the mode all wants a key for each entry, and separate keeps the requester out.
func TestAllApproversVoteOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "both", voters(finance, "role:legal"), func(s *policy.Rules) { s.Mode = approval.ModeAll })
		id := f.add(t, job(`1`))[0].ID
		both := ballot("key_ab", true, finance, "role:legal")
		if err := f.vote(t, id, both); err != nil {
			t.Fatalf("vote: %v", err)
		}
		f.state(t, id, api.JobHeld)
		if err := f.vote(t, id, ballot("key_a", true, finance)); err != nil {
			t.Fatalf("vote: %v", err)
		}
		f.state(t, id, api.JobPending)
	})
}

// TestRacingVoters: of 32 voters, 3 decide, once.
func TestRacingVoters(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "money", count(3), voters(finance))
		id := f.add(t, job(`1`))[0].ID
		var wg sync.WaitGroup
		var counted atomic.Int64
		for i := range 32 {
			wg.Go(func() {
				for {
					err := f.vote(t, id, ballot(fmt.Sprint("key_", i), true, finance))
					switch api.ErrorCode(err) {
					case api.CodeStoreConflict:
						continue
					case "":
						counted.Add(1)
					case api.CodeJobState:
					default:
						t.Errorf("vote: got %v, want success or CodeJobState", err)
					}
					return
				}
			})
		}
		wg.Wait()
		j := f.get(t, id)
		if counted.Load() != 3 || j.State != api.JobPending || len(j.Approval.Votes) != 3 {
			t.Errorf("got %d votes counted, %d stored, state %s, want 3, 3, pending", counted.Load(), len(j.Approval.Votes), j.State)
		}
		decided := 0
		for _, e := range f.recorded(t) {
			if e.Type == "approval.decided" {
				decided++
			}
		}
		if decided != 1 {
			t.Errorf("got %d events approval.decided, want 1", decided)
		}
	})
}

// TestApprovalsExpire: the default decides once, recorded as by the expiry.
func TestApprovalsExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		want := map[string]api.JobState{approval.OnExpiryApprove: api.JobPending, approval.OnExpiryReject: api.JobDead, approval.OnExpiryKeep: api.JobHeld}
		for then, state := range want {
			f.policy(t, "money", expiring(time.Minute, then))
			id := f.add(t, job(`{"n":1}`))[0].ID
			f.clock.advance(59 * time.Second)
			f.settle(t)
			f.state(t, id, api.JobHeld)
			f.clock.advance(2 * time.Second)
			f.settle(t)
			j := f.get(t, id)
			if j.State != state || string(j.Payload) != `{"n":1}` {
				t.Errorf("%s: got state %s, payload %s, want %s with its payload", then, j.State, j.Payload, state)
			}
			if then != approval.OnExpiryKeep && (j.Approval.State != approval.Expired || j.Approval.DecidedBy != approval.ByExpiry) {
				t.Errorf("%s: got %+v, want it decided by its expiry", then, j.Approval)
			}
		}
	})
}

// TestTheInbox has the jobs that are held, and those that were decided, until they are deleted.
func TestTheInbox(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "money", voters(finance))
		inbox := approvals.New(f.store, f.Broker)
		states := func(state approval.State) (ids []string) {
			for position := ""; ; {
				page, next, err := inbox.List(t.Context(), f.tenant, approvals.Filter{State: state}, position, 2)
				if err != nil {
					t.Fatalf("List: %v", err)
				}
				for i := range page {
					ids = append(ids, page[i].ID)
				}
				if next == "" {
					return ids
				}
				position = next
			}
		}
		var ids []string
		for range 5 {
			ids = append(ids, f.add(t, job(`1`))[0].ID)
			f.clock.advance(time.Millisecond)
		}
		if got := states(approval.Pending); len(got) != 5 || got[0] != ids[0] {
			t.Errorf("pending: got %v, want %v", got, ids)
		}
		for i, b := range []approvals.Ballot{ballot("key_a", true, finance), ballot("key_a", false, finance)} {
			if err := f.vote(t, ids[i], b); err != nil {
				t.Fatalf("vote: %v", err)
			}
		}
		if err := second(f.Cancel(t.Context(), f.tenant, ids[2])); err != nil {
			t.Fatalf("Cancel: %v", err)
		}
		if pending, approved, rejected := states(approval.Pending), states(approval.Approved), states(approval.Rejected); len(pending) != 2 || len(approved) != 1 || len(rejected) != 1 {
			t.Errorf("got pending %v, approved %v, rejected %v, want 2, 1, 1", pending, approved, rejected)
		}
		for _, id := range ids {
			if err := f.Delete(t.Context(), f.tenant, id); err != nil {
				t.Fatalf("Delete: %v", err)
			}
		}
		if n := f.store.Client().ZCard(t.Context(), f.store.JobKeys(f.tenant).Approvals()).Val(); n != 0 {
			t.Errorf("got %d entries after the jobs were deleted, want none", n)
		}
	})
}

// TestVotesMayBeCut: a vote that is interrupted after any write is repeated, and decides once.
func TestVotesMayBeCut(t *testing.T) {
	t.Parallel()
	cfg := storage.Config{URL: storagetest.Redis(t).URL}
	whole := newFixture(t, cfg)
	cfg.Clock = whole.clock.now
	for k := range cutWrites {
		cfg.ScriptPrelude = storagetest.CutAfter(k)
		store := storagetest.Open(t, cfg)
		broken := &fixture{Broker: brokerOn(t, store), store: store, tenant: whole.tenant, clock: whole.clock}
		whole.policy(t, "money", count(2), voters(finance))
		id := whole.add(t, job(`1`))[0].ID
		for _, key := range []string{"key_a", "key_b"} {
			_ = broken.vote(t, id, ballot(key, true, finance)) // may be interrupted
			if err := whole.vote(t, id, ballot(key, true, finance)); err != nil {
				t.Errorf("repeat after %d writes: got %v, want no error", k, err)
			}
		}
		j := whole.get(t, id)
		if j.State != api.JobPending || len(j.Approval.Votes) != 2 {
			t.Errorf("after %d writes: got %s with %d votes, want pending with 2", k, j.State, len(j.Approval.Votes))
		}
	}
}

// TestACostlyJobIsHeld: a job is held when it reports to have spent so much, and not again once approved.
func TestACostlyJobIsHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		most := agent.USD(100)
		f.policy(t, "costly", voters(finance), func(s *policy.Rules) { s.Match.MinCostUSD = &most })
		id := f.add(t, job(`1`))[0].ID
		spend := func(cost agent.USD, want api.JobState) {
			t.Helper()
			leased := f.fetch(t, 1)[0]
			out, err := f.Ack(t.Context(), f.tenant, []api.JobAck{{ID: id, LeaseEpoch: leased.LeaseEpoch, Continue: true, Usage: []agent.Usage{{Seq: 1, Model: "m", CostUSD: &cost}}}})
			if err != nil || !out[0].OK || out[0].State != want {
				t.Fatalf("ack with %s USD: got %+v, error %v, want state %s", cost, out, err, want)
			}
		}
		spend(99, api.JobPending)
		spend(1, api.JobHeld)
		if err := f.vote(t, id, ballot("key_x", true, "role:sales")); api.ErrorCode(err) != api.CodeApprovalDenied {
			t.Errorf("vote of another role: got %v, want CodeApprovalDenied", err)
		}
		if err := f.vote(t, id, ballot("key_a", true, finance)); err != nil {
			t.Errorf("vote: got %v, want no error", err)
		}
		spend(50, api.JobPending)
	})
}

// TestVotesOfOthers: a requester has no vote, neither its own nor by a delegate, and delegator and
// delegate have one vote together.
func TestVotesOfOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.policy(t, "money", count(2), voters(finance))
		ctx := event.WithActor(t.Context(), "key_me")
		added, err := f.Enqueue(ctx, queue.Enqueue{Tenant: f.tenant, Namespace: namespace, Queue: emails, Jobs: []api.NewJob{job(`1`)}})
		if err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		id := added[0].ID
		delegate := func(key, of string) approvals.Ballot {
			b := ballot(key, true)
			b.Standings = append(b.Standings, approvals.Standing{Key: of, Of: of, Roles: []string{finance}})
			return b
		}
		for _, tt := range []struct {
			name string
			b    approvals.Ballot
			code api.Code
		}{
			{"the requester", ballot("key_me", true, finance), api.CodeApprovalDenied},
			{"a delegate of the requester", delegate("key_b", "key_me"), api.CodeApprovalDenied},
			{"the requester as a delegate", delegate("key_me", "key_a"), api.CodeApprovalDenied},
			{"a delegate", delegate("key_b", "key_a"), ""},
			{"its delegator", ballot("key_a", true, finance), api.CodeJobState},
			{"a second delegate", delegate("key_c", "key_a"), api.CodeJobState},
		} {
			if err := f.vote(t, id, tt.b); api.ErrorCode(err) != tt.code {
				t.Errorf("vote of %s: got %v, want code %q", tt.name, err, tt.code)
			}
		}
		f.state(t, id, api.JobHeld)
		if votes := f.get(t, id).Approval.Votes; len(votes) != 1 || votes[0].OnBehalfOf != "key_a" {
			t.Errorf("votes: got %+v, want one on behalf of key_a", votes)
		}
	})
}
