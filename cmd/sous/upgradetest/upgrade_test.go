package upgradetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// TestUpgrade starts this release on the records of each earlier release in testdata: all
// answers are as they were, and all that was begun goes on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("filepath.Glob = %v, %v, want at least one folder", folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			made, store := load(t, folder)
			// A server without the role scheduler changes no record by itself. The others
			// would delete what ended long ago.
			t.Run("answers", func(t *testing.T) { compareAnswers(t, start(t, store, folder, "api"), made) })
			t.Run("use", func(t *testing.T) { use(t, start(t, store, folder, "api"), made) })
			t.Run("finish", func(t *testing.T) { finish(t, start(t, store, folder, "api,invoker,scheduler"), made) })
		})
	}
}

// load fills a store with the records of a folder and returns the URL of the store.
func load(t *testing.T, folder string) (*played, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "answers.json"))
	var made played
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	if err != nil {
		t.Fatalf("read the answers: %v", err)
	}
	records, err := os.Open(filepath.Join(folder, "records.resp"))
	if err != nil {
		t.Fatalf("os.Open: %v", err)
	}
	defer records.Close()
	store := storagetest.Redis(t)
	options, err := redis.ParseURL(store.URL)
	if err != nil {
		t.Fatalf("redis.ParseURL: %v", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := readRecords(t.Context(), records, client); err != nil {
		t.Fatalf("readRecords: %v", err)
	}
	return &made, store.URL
}

// start starts sous serve with the key file of a folder, until the test ends.
func start(t *testing.T, store, folder, roles string) *player {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "secrets.key"))
	keys := filepath.Join(t.TempDir(), "secrets.key")
	if err == nil {
		err = os.WriteFile(keys, text, 0o600)
	}
	if err != nil {
		t.Fatalf("copy the keys of secrets: %v", err)
	}
	args := []string{"serve", "--store", store, "--roles", roles, "--secrets-key-file", keys}
	server, err := soustest.Command{Args: args}.Start(soustest.Executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if t.Failed() {
			t.Logf("output of sous:\n%s", server.Output())
		}
	})
	return &player{t: t, url: server.URL}
}

// compareAnswers fails the test for each value of the old answers that the new ones lack.
func compareAnswers(t *testing.T, p *player, made *played) {
	p.t, p.key = t, made.Admin
	read := answers(p, made)
	for _, path := range slices.Sorted(maps.Keys(made.Answers)) {
		for _, line := range lost(made.Answers[path], read[path]) {
			t.Errorf("GET %s: got another answer, want the old one: %s", path, line)
		}
	}
}

// differs names the fields that may differ, with the reason.
var differs = map[string]string{
	"oldest_pending_ms": "it is an age",
	"score":             "0.1.0 showed this internal field of jobs",
}

// lost returns a line for each value of old that now does not have. New fields are allowed.
func lost(old, now any) (lines []string) {
	switch was := old.(type) {
	case object:
		is, ok := now.(object)
		if !ok {
			return []string{fmt.Sprintf(": was an object, is %v", now)}
		}
		for _, field := range slices.Sorted(maps.Keys(was)) {
			if differs[field] != "" {
				continue
			}
			for _, line := range lost(was[field], is[field]) {
				lines = append(lines, "."+field+line)
			}
		}
	case []any:
		is, ok := now.([]any)
		if !ok || len(is) != len(was) {
			return []string{fmt.Sprintf(": was the list %v, is %v", old, now)}
		}
		for i := range was {
			for _, line := range lost(was[i], is[i]) {
				lines = append(lines, fmt.Sprintf("[%d]%s", i, line))
			}
		}
	default:
		if !reflect.DeepEqual(old, now) && !sameTime(old, now) {
			lines = []string{fmt.Sprintf(": was %v, is %v", old, now)}
		}
	}
	return lines
}

// sameTime reports whether both values are texts of the same millisecond.
func sameTime(old, now any) bool {
	was, err := time.Parse(time.RFC3339Nano, fmt.Sprint(old))
	if err != nil {
		return false
	}
	is, err := time.Parse(time.RFC3339Nano, fmt.Sprint(now))
	return err == nil && was.UnixMilli() == is.UnixMilli()
}

func TestLost(t *testing.T) {
	t.Parallel()
	old := object{"a": 1.0, "b": []any{object{"c": "x"}}, "d": object{"e": true}, "score": 1, "t": "2026-11-24T11:57:11.015813807Z"}
	now := object{"a": 1.0, "b": []any{object{"c": "y", "new": 1}}, "d": nil, "new": 2, "t": "2026-11-24T11:57:11.015Z"}
	want := []string{".b[0].c: was x, is y", ".d: was an object, is <nil>"}
	if got := lost(old, now); !slices.Equal(got, want) {
		t.Errorf("lost = %q, want %q", got, want)
	}
	if got := lost(old, old); len(got) > 0 {
		t.Errorf("lost of equal answers = %q, want none", got)
	}
}
