package storagetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage/storeserver"
)

// A cluster's slots, and the nodes that share them.
const (
	clusterSlots = 16384
	clusterNodes = 3
)

// Cluster returns the URL of a cluster of three nodes, which the tests of this
// process share.
func Cluster(t testing.TB) string {
	t.Helper()
	c, err := sharedCluster()
	if err != nil {
		t.Fatalf("sharedCluster: %v", err)
	}
	return c.url
}

// cluster keeps its nodes: an unreachable Server would be closed with its pipe.
type cluster struct {
	url   string
	nodes []*Server
}

var sharedCluster = sync.OnceValues(func() (*cluster, error) {
	return newCluster(func() (*Server, error) { return newShared(true) })
})

// OwnCluster starts a cluster for one test, for tests that the data of others would
// disturb.
func OwnCluster(t testing.TB) string {
	t.Helper()
	c, err := newCluster(func() (*Server, error) {
		s, err := newServer(&Server{dir: t.TempDir(), cluster: true})
		if err == nil {
			t.Cleanup(s.Kill)
		}
		return s, err
	})
	if err != nil {
		t.Fatalf("newCluster: %v", err)
	}
	return c.url
}

// newCluster makes a cluster of the nodes that node starts, and waits until each node knows the
// owner of every slot.
func newCluster(node func() (*Server, error)) (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var made cluster
	var clients []*redis.Client
	var addrs []string
	for range clusterNodes {
		s, err := node()
		if err != nil {
			return nil, err
		}
		client := storeserver.Client(s.addr())
		defer func() { _ = client.Close() }() // its commands have been answered
		made.nodes = append(made.nodes, s)
		clients, addrs = append(clients, client), append(addrs, s.addr())
	}
	join := joinRedis
	if made.nodes[0].binary.Kind == storeserver.KVRocks {
		join = joinKVRocks
	}
	if err := join(ctx, made.nodes, clients); err != nil {
		return nil, err
	}
	for _, c := range clients {
		if err := awaitCluster(ctx, c); err != nil {
			return nil, err
		}
	}
	made.url = "redis-cluster://" + strings.Join(addrs, ",")
	return &made, nil
}

// slotsOf returns the first and the last slot of the nth node, counted from 0: 0 and 5460, 5461
// and 10921, 10922 and 16383.
func slotsOf(n int) (first, last int) {
	return n * clusterSlots / clusterNodes, (n+1)*clusterSlots/clusterNodes - 1
}

// joinRedis assigns each node its slots and lets the nodes meet.
func joinRedis(ctx context.Context, nodes []*Server, clients []*redis.Client) error {
	for i, client := range clients {
		first, last := slotsOf(i)
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return fmt.Errorf("assign the slots of node %d: %w", i, err)
		}
		if i == 0 {
			continue
		}
		if err := clients[0].ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(nodes[i].Port)).Err(); err != nil {
			return fmt.Errorf("join node %d: %w", i, err)
		}
	}
	return nil
}

// joinKVRocks sets the same topology on each node. KVRocks nodes do not talk to
// each other about it. A line of the topology is the id, address, role and slots of a node:
//
//	0000000000000000000000000000000000000001 127.0.0.1 12345 master - 0-5460
func joinKVRocks(ctx context.Context, nodes []*Server, clients []*redis.Client) error {
	var topology []string
	id := func(n int) string { return fmt.Sprintf("%040d", n+1) }
	for i, node := range nodes {
		first, last := slotsOf(i)
		topology = append(topology, fmt.Sprintf("%s 127.0.0.1 %d master - %d-%d", id(i), node.Port, first, last))
	}
	for i, client := range clients {
		if err := client.Do(ctx, "CLUSTERX", "SETNODEID", id(i)).Err(); err != nil {
			return fmt.Errorf("name node %d: %w", i, err)
		}
		if err := client.Do(ctx, "CLUSTERX", "SETNODES", strings.Join(topology, "\n"), 1).Err(); err != nil {
			return fmt.Errorf("set the topology on node %d: %w", i, err)
		}
	}
	return nil
}

// awaitCluster polls a node every 10 ms until it knows all others and the owner of every slot.
// Before that, commands can fail.
func awaitCluster(ctx context.Context, c *redis.Client) error {
	for {
		info, err := c.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", clusterNodes)) {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %w", ctx.Err())
		}
	}
}
