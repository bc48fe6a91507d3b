package storage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Node is a server that holds data of its own: the single server, or a master of a cluster.
type Node struct {
	Addr   string // host:port; "" where the store is a single server
	Client redis.Cmdable
}

// Pattern returns the pattern of SCAN that finds the keys of this server which begin with prefix,
// and perhaps others. A node of a KVRocks cluster that continues at a key without the prefix skips
// the rest of that key's slot, so the pattern for a node of a cluster matches all keys.
func (n Node) Pattern(prefix string) string {
	if n.Addr != "" {
		return "*"
	}
	return prefix + "*"
}

// Masters returns the servers that together hold all keys, in the order of their
// addresses. The address is "" where the store is a single server.
func (s *Store) Masters(ctx context.Context) ([]Node, error) {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return []Node{{"", s.rdb}}, nil
	}
	var mu sync.Mutex
	var nodes []Node
	err := cluster.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, Node{client.Options().Addr, client})
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("the cluster has no masters")
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Addr, b.Addr) })
	return nodes, Failure(ctx, "find the masters", err)
}
