package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Examine asks every server that holds data, which is each master of a cluster and
// the master of sentinels, for its kind, version, settings and clock, and judges
// them. A server that refuses a question is a warning in the report; a server that
// does not answer is an error, api.CodeStoreUnavailable. The report of the embedded
// store has no findings: its journal and its clock are this process's own.
func (s *Store) Examine(ctx context.Context) (Report, error) {
	if s.embedded {
		return Report{Kind: KindEmbedded}, nil
	}
	nodes, err := s.masters(ctx)
	if err != nil {
		return Report{}, err
	}
	servers := make([]serverReport, len(nodes))
	for i, n := range nodes {
		if servers[i], err = s.examineServer(ctx, n); err != nil {
			return Report{}, err
		}
	}
	r := Report{Kind: servers[0].kind, Version: servers[0].version}
	skew, refusal, err := s.skew(ctx, nodes)
	if err != nil {
		return Report{}, err
	}
	clock := skew.finding()
	if refusal != nil {
		clock = Finding{
			Name: CheckClock, Level: LevelWarning,
			Text:   fmt.Sprintf("TIME is refused (%v): the store's clock could not be compared with this machine's", refusal),
			Remedy: "allow TIME for the user of the store's URL",
		}
	}
	r.Skew, r.Findings = skew, append(merge(servers), clock)
	return r, nil
}

// examineServer judges one server, except for its clock.
func (s *Store) examineServer(ctx context.Context, n node) (serverReport, error) {
	report := serverReport{addr: n.addr}
	info, err := n.client.Info(ctx, "server").Result()
	if refused(err) {
		report.kind = KindUnknown
		report.findings = []Finding{{
			Name: CheckVersion, Level: LevelWarning,
			Text:   fmt.Sprintf("INFO is refused (%v): which server this is and how it is set could not be examined", err),
			Remedy: "allow INFO, CONFIG GET and TIME for the user of the store's URL, or compare the server with docs/storage.md",
		}}
		return report, nil
	}
	if err != nil {
		return report, failure(ctx, "examine the store", err)
	}
	report.kind, report.version = identify(info)
	report.findings = []Finding{judgeVersion(report.kind, report.version)}
	settings, err := readSettings(ctx, n.client, requiredSettings[report.kind])
	if refused(err) {
		report.findings = append(report.findings, Finding{
			Name: CheckSettings, Level: LevelWarning,
			Text:   fmt.Sprintf("CONFIG GET is refused (%v): the settings could not be examined", err),
			Remedy: "allow CONFIG GET for the user of the store's URL, or compare the settings with docs/storage.md",
		})
		return report, nil
	}
	if err != nil {
		return report, failure(ctx, "examine the store", err)
	}
	report.findings = append(report.findings, judgeSettings(report.kind, report.version, settings)...)
	return report, nil
}

// readSettings reads the settings with the given names. One that the server does
// not know is absent. KVRocks takes one pattern a call.
func readSettings(ctx context.Context, client redis.Cmdable, names []string) (map[string]string, error) {
	settings := map[string]string{}
	for _, name := range names {
		found, err := client.ConfigGet(ctx, name).Result()
		if err != nil {
			return nil, err
		}
		if value, ok := found[name]; ok {
			settings[name] = value
		}
	}
	return settings, nil
}

// refused reports whether the server answered a question with an error although it
// can serve: an access list forbids it, or the service does not offer it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && !unavailable(err)
}

// node is a server that holds data of its own.
type node struct {
	addr   string
	client redis.Cmdable
}

// masters returns the servers that together hold all keys, in the order of their
// addresses. The address is "" where the store is a single server.
func (s *Store) masters(ctx context.Context) ([]node, error) {
	cluster, ok := s.rdb.(*redis.ClusterClient)
	if !ok {
		return []node{{"", s.rdb}}, nil
	}
	var mu sync.Mutex
	var nodes []node
	err := cluster.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node{client.Options().Addr, client})
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("the cluster has no masters")
	}
	slices.SortFunc(nodes, func(a, b node) int { return cmp.Compare(a.addr, b.addr) })
	return nodes, failure(ctx, "find the masters", err)
}
