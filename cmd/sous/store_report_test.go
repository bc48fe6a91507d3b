package main

import (
	"regexp"
	"testing"

	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/storage/storagetest"
)

// serve and dev log what store they found and its problems, and start all the
// same. The embedded store has nothing to say.
func TestServersLogTheStore(t *testing.T) {
	t.Parallel()
	if onKVRocks(t) {
		t.Skip("KVRocks keeps its data and removes none")
	}
	sound := storagetest.Redis(t, "--appendonly", "yes").URL
	unsound := storagetest.Redis(t, "--maxmemory-policy", "allkeys-lru").URL
	const (
		persistence = `appendonly is \\?"no\\?" and save is \\?"\\?": a server that ends loses everything`
		eviction    = `maxmemory-policy is \\?"allkeys-lru\\?"`
	)
	for name, test := range map[string]struct {
		args            []string
		logged, missing []string
	}{
		"sound": {[]string{"serve", "--auth", "off", "--store", sound},
			[]string{`"level":"info".*"logger":"store","msg":"store","kind":"redis","version":"[0-9.]+"`}, []string{`"level":"warn".*"logger":"store"`}},
		"unsound": {[]string{"serve", "--auth", "off", "--store", unsound},
			[]string{`"kind":"redis"`, `"level":"warn".*` + persistence + `.*"severity":"failure","remedy":"set appendonly yes"`, `"level":"warn".*` + eviction}, nil},
		"one role": {[]string{"serve", "--auth", "off", "--roles", "scheduler", "--store", unsound}, []string{persistence}, nil},
		"dev":      {[]string{"dev", "--data-dir", t.TempDir(), "--store", unsound}, []string{persistence}, nil},
		"embedded": {[]string{"dev", "--data-dir", t.TempDir()}, nil, []string{persistence, "appendonly", "clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := soustest.Command{Args: test.args}.Start(soustest.Executable(t))
			if err != nil {
				t.Fatalf("Start: %v", err)
			}
			if err := s.Stop(); err != nil {
				t.Errorf("Stop: %v", err)
			}
			output := s.Output()
			for _, want := range test.logged {
				if !regexp.MustCompile(want).MatchString(output) {
					t.Errorf("got no line with %s, want one in\n%s", want, output)
				}
			}
			for _, unwanted := range test.missing {
				if regexp.MustCompile(unwanted).MatchString(output) {
					t.Errorf("got a line with %s, want none in\n%s", unwanted, output)
				}
			}
		})
	}
}
