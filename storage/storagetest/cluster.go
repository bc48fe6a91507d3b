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
)

// clusterSlots is how many slots a cluster has.
const clusterSlots = 16384

// Cluster gives the URL of a cluster of three nodes, which the tests of this
// process share.
func Cluster(t testing.TB) string {
	t.Helper()
	c, err := sharedCluster()
	if err != nil {
		t.Fatal(err)
	}
	return c.url
}

// cluster keeps its nodes: an unreachable Server would be closed with its pipe.
type cluster struct {
	url   string
	nodes []*Server
}

var sharedCluster = sync.OnceValues(func() (*cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var made cluster
	var clients []*redis.Client
	var addrs []string
	for i := range 3 {
		s, err := newShared("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		if err != nil {
			return nil, err
		}
		client := redis.NewClient(&redis.Options{Addr: s.addr(), Protocol: 2, DisableIdentity: true})
		defer func() { _ = client.Close() }() // it only asked
		made.nodes = append(made.nodes, s)
		clients, addrs = append(clients, client), append(addrs, s.addr())
		first, last := i*clusterSlots/3, (i+1)*clusterSlots/3-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return nil, fmt.Errorf("give node %d its slots: %w", i, err)
		}
		if i == 0 {
			continue
		}
		if err := clients[0].ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(s.Port)).Err(); err != nil {
			return nil, fmt.Errorf("join node %d: %w", i, err)
		}
	}
	for _, c := range clients {
		if err := awaitCluster(ctx, c); err != nil {
			return nil, err
		}
	}
	made.url = "redis-cluster://" + strings.Join(addrs, ",")
	return &made, nil
})

// awaitCluster asks a node until it knows all three and every slot's owner.
func awaitCluster(ctx context.Context, c *redis.Client) error {
	for {
		info, err := c.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the cluster does not come up: %w", ctx.Err())
		}
	}
}
