package jobstore

import (
	"cmp"
	"strings"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
)

type (
	Key          struct{ Tenant, Id string }
	NamespaceKey struct{ Tenant, Namespace string }
)

// Queue names one queue of the whole store.
type Queue struct{ Tenant, Namespace, Name string }

// Path is how sets of a tenant's queues call it.
func (q Queue) Path() string { return q.Namespace + "/" + q.Name }

func (s *Store) Keys(q Queue) storage.QueueKeys {
	return s.store.JobKeys(q.Tenant).Queue(q.Namespace, q.Name)
}

// Member is how the due and ready sets call a queue.
func (q Queue) Member() string { return storage.DueQueuePrefix + q.Tenant + "/" + q.Path() }

// QueueOfMember is the queue that a member of the due and ready sets is.
func QueueOfMember(member string) (Queue, bool) {
	rest, ok := strings.CutPrefix(member, storage.DueQueuePrefix)
	if !ok {
		return Queue{}, false
	}
	return ParseQueue(rest)
}

// ParseQueue reads tenant/namespace/queue.
func ParseQueue(s string) (Queue, bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Queue{}, false
	}
	return Queue{parts[0], parts[1], parts[2]}, true
}

func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Tenant, o.Tenant), strings.Compare(k.Id, o.Id))
}

func IsFunctionQueue(q string) bool { return strings.HasPrefix(q, api.FunctionQueuePrefix) }

// Sets are the keys that hold q's jobs of one state, in the order in which their
// turn comes: one, and for pending jobs one for each rank.
func (s *Store) Sets(q Queue, state api.JobState) []string { return s.Keys(q).Sets(state) }

// SetOf is the key among setsOf that holds a job with a score, of which only the rank
// counts.
func (s *Store) SetOf(q Queue, state api.JobState, score int64) string {
	sets := s.Sets(q, state)
	if state != api.JobPending {
		return sets[0]
	}
	return sets[min(max(RankOf(score), 0), len(sets)-1)]
}
