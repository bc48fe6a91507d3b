package spawn

import (
	"testing"

	"github.com/codesous/sous/invoker/sandbox/nursery"
)

// TestUsersAreTakenOnce: no user is assigned twice while its child lives.
func TestUsersAreTakenOnce(t *testing.T) {
	t.Parallel()
	s := &Spawner{used: map[int]bool{}}
	users := nursery.Users{First: 500, Count: 20}
	seen := map[int]bool{}
	for range users.Count {
		user, err := s.take(users)
		if err != nil || user < 500 || user > 519 || seen[user] {
			t.Fatalf("take: got %d, %v after %v, want another of 500 to 519", user, err, seen)
		}
		seen[user] = true
	}
	if user, err := s.take(users); err == nil {
		t.Errorf("take with none left: got %d, want an error", user)
	}
	s.Release(507)
	if user, err := s.take(users); user != 507 || err != nil {
		t.Errorf("take after a release: got %d, %v, want 507", user, err)
	}
	if user, err := s.take(nursery.Users{First: 65534, Count: 1}); user != 65534 || err != nil || len(s.used) != users.Count {
		t.Errorf("take of a shared user: got %d, %v, want 65534", user, err)
	}
}
