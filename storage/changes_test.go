package storage_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/storagetest"
)

func TestChangesReachEverySubscriber(t *testing.T) {
	t.Parallel()
	storagetest.EachWithCluster(t, func(t *testing.T, s *storage.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		want := storage.Change{Kind: storage.ChangeFunction, Tenant: storagetest.Tenant(t), Namespace: "n", Function: "f"}
		var all []chan storage.Change
		for range 2 {
			heard := make(chan storage.Change, 1000)
			all = append(all, heard)
			if err := s.Subscribe(ctx, func(c storage.Change) { heard <- c }); err != nil {
				t.Fatalf("Subscribe: %v", err)
			}
		}
		if err := s.PublishChange(ctx, want); err != nil {
			t.Fatalf("PublishChange: %v", err)
		}
		for _, heard := range all {
			storagetest.AwaitChange(t, heard, want)
		}
	})
}

func TestSubscriptionOutlivesTheServer(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	heard := make(chan storage.Change, 1000)
	if err := s.Subscribe(t.Context(), func(c storage.Change) { heard <- c }); err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	server.Kill()
	server.Start(t)
	storagetest.AwaitChange(t, heard, storage.Change{Kind: storage.ChangeResubscribed})
	want := storage.Change{Kind: storage.ChangeCancel, ActivationID: "a"}
	storagetest.Eventually(t, func() bool { return s.PublishChange(t.Context(), want) == nil })
	storagetest.AwaitChange(t, heard, want)
}

// Subscribers share a connection, and none waits for another: one that is too slow is told
// that it missed notices.
func TestSlowSubscriberHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	s := storagetest.Open(t, storage.Config{URL: server.URL})
	heard, stuck, slow := make(chan storage.Change, 1000), make(chan struct{}), make(chan storage.Change, 1000)
	for _, hear := range []func(storage.Change){
		func(c storage.Change) { heard <- c },
		func(c storage.Change) { <-stuck; slow <- c },
	} {
		if err := s.Subscribe(t.Context(), hear); err != nil {
			t.Fatalf("Subscribe: %v", err)
		}
	}
	for i := range 200 {
		c := storage.Change{Kind: storage.ChangeKey, KeyID: strconv.Itoa(i)}
		if err := s.PublishChange(t.Context(), c); err != nil {
			t.Fatalf("PublishChange: %v", err)
		}
		storagetest.AwaitChange(t, heard, c)
	}
	close(stuck)
	storagetest.AwaitChange(t, slow, storage.Change{Kind: storage.ChangeResubscribed})
	channels, err := s.Client().PubSubNumSub(t.Context(), "cs:changes").Result()
	if err != nil {
		t.Fatalf("PubSubNumSub: %v", err)
	}
	if got := channels["cs:changes"]; got != 1 {
		t.Errorf("subscriptions: got %d, want 1", got)
	}
}
