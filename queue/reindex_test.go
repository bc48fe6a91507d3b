package queue_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

// TestReindexEntersWhatWasRead: a job that has changed since it was read, or does not exist, is not
// added. A pending job is added at the cursor if its score is below it.
func TestReindexEntersWhatWasRead(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		const read, since = "pending 0 0 5 - -", "active 1 1 9 - w1"
		for name, c := range map[string]struct {
			run, cursor string
			reply       string
			score       float64 // 0: it is in no index
		}{
			"as it was read":     {read, "", "ok", 70},
			"behind the cursor":  {read, "60", "ok", 70},
			"before the cursor":  {read, "90", "ok", 90},
			"changed since":      {since, "", since, 0},
			"deleted since":      {"", "", "gone", 0},
			"on, behind a score": {since, "90", since, 0},
		} {
			jobs := s.JobKeys(storagetest.Tenant(t))
			q, id := jobs.Queue("default", "work"), "job-1"
			if c.run != "" {
				s.Client().Set(t.Context(), jobs.Run(id), c.run, 0)
			}
			if c.cursor != "" {
				s.Client().HSet(t.Context(), q.Cursor(), "2", c.cursor)
			}
			reply, err := s.Script(t.Context(), storage.ScriptJobReindex, []string{
				jobs.Run(id), q.Set("pending"), q.Cursor(), q.After(), q.Expiry(), jobs.Queues(), q.Config(), jobs.Events(),
			}, id, read, "default/work", "70", 2, 0, "", "", 1)
			if err != nil || reply != c.reply {
				t.Errorf("%s: got reply %v, %v; want %q", name, reply, err, c.reply)
			}
			score, err := s.Client().ZScore(t.Context(), q.Set("pending"), id).Result()
			if score != c.score || (err == redis.Nil) != (c.score == 0) { //nolint:errorlint // never wrapped
				t.Errorf("%s: got score %g, %v; want %g", name, score, err, c.score)
			}
		}
	})
}
