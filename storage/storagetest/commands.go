package storagetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// CommandCalls returns how often the server has processed each command since it
// started, by the command's name in lower case. A script's own commands count.
// Compare two readings: KVRocks cannot reset its statistics.
func CommandCalls(t testing.TB, client redis.UniversalClient) map[string]int {
	t.Helper()
	info, err := client.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]int{}
	for name, stats := range info["Commandstats"] {
		_, rest, _ := strings.Cut(stats, "calls=")
		text, _, _ := strings.Cut(rest, ",")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("commandstats %s: got %q, want calls=N", name, stats)
		}
		calls[strings.TrimPrefix(name, "cmdstat_")] = n
	}
	return calls
}
