package jobstore

import (
	"cmp"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

type (
	// Key identifies a job, or another record with an id, in the whole store.
	Key struct{ Tenant, ID string }
	// NamespaceKey identifies a namespace in the whole store.
	NamespaceKey struct{ Tenant, Namespace string }
)

// Queue identifies a queue in the whole store. For Queue{"t_acme01", "shop", "mail"},
//
//	Path    shop/mail                 in cs:queue:t_acme01:index, the list of the tenant's queues
//	Member  queue/t_acme01/shop/mail  in cs:due:N and cs:ready:N, which all tenants share
//
// Names have no slashes, so both can be parsed again.
type Queue struct{ Tenant, Namespace, Name string }

// Path returns namespace/queue, the name of q in the sets of its tenant.
func (q Queue) Path() string { return q.Namespace + "/" + q.Name }

// Keys returns the store's keys of q.
func (s *Store) Keys(q Queue) storage.QueueKeys {
	return s.store.JobKeys(q.Tenant).Queue(q.Namespace, q.Name)
}

// Member returns the member of the due and ready sets that stands for q.
func (q Queue) Member() string { return storage.DueQueuePrefix + q.Tenant + "/" + q.Path() }

// QueueOfMember returns the queue that a member of the due and ready sets stands for. It
// returns false if the member stands for something else.
func QueueOfMember(member string) (Queue, bool) {
	rest, ok := strings.CutPrefix(member, storage.DueQueuePrefix)
	if !ok {
		return Queue{}, false
	}
	return ParseQueue(rest)
}

// ParseQueue parses tenant/namespace/queue.
func ParseQueue(s string) (Queue, bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Queue{}, false
	}
	return Queue{parts[0], parts[1], parts[2]}, true
}

// Compare orders keys by tenant, then by id.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Tenant, o.Tenant), strings.Compare(k.ID, o.ID))
}

// IsFunctionQueue reports whether q is the name of an fn queue: one that holds the
// asynchronous invocations of a function and that only the platform's workers fetch from.
func IsFunctionQueue(q string) bool { return strings.HasPrefix(q, api.FunctionQueuePrefix) }

// Sets returns the keys of the sets that hold q's jobs of one state, in the order in which
// they are served: one set, or four if state is pending, whose index is the rank of their
// priority (0 is critical).
func (s *Store) Sets(q Queue, state api.JobState) []string { return s.Keys(q).Sets(state) }

// SetOf returns the key among Sets that holds a job with the given score, which is that of
// its spec for jobs of every state. Only the rank in the score matters, and only for pending
// jobs.
func (s *Store) SetOf(q Queue, state api.JobState, score int64) string {
	sets := s.Sets(q, state)
	if state != api.JobPending {
		return sets[0]
	}
	return sets[min(max(RankOf(score), 0), len(sets)-1)]
}
