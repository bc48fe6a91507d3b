package storage_test

import (
	"context"
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
