package examine

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/codesous/sous/storage"
)

// Servers examines every server that holds data of s: each master of a cluster, or the
// master of sentinels. It reads the kind, version, settings and clock of each, and checks
// them. A server that refuses a question is a warning in the report; a server that does
// not answer is an error, api.CodeStoreUnavailable. The report of an embedded store has no
// findings: its journal and its clock belong to this process.
func Servers(ctx context.Context, s *storage.Store) (Report, error) {
	if s.Embedded() {
		return Report{Kind: KindEmbedded}, nil
	}
	nodes, err := s.Masters(ctx)
	if err != nil {
		return Report{}, err
	}
	servers := make([]serverReport, len(nodes))
	for i, n := range nodes {
		servers[i], err = examineServer(ctx, n)
		if err != nil {
			return Report{}, err
		}
	}
	r := Report{Kind: servers[0].kind, Version: servers[0].version}
	skew, refusal, err := measureSkew(ctx, s, nodes)
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

// examineServer checks one server, except for its clock. A question that the server refuses
// becomes a warning, and the questions that follow from its answer are not asked.
func examineServer(ctx context.Context, n storage.Node) (serverReport, error) {
	report := serverReport{addr: n.Addr}
	info, err := n.Client.Info(ctx, "server").Result()
	if storage.Refused(err) {
		report.kind = KindUnknown
		report.findings = []Finding{{
			Name: CheckVersion, Level: LevelWarning,
			Text:   fmt.Sprintf("INFO is refused (%v): which server this is and how it is set could not be examined", err),
			Remedy: "allow INFO, CONFIG GET and TIME for the user of the store's URL, or compare the server with docs/storage.md",
		}}
		return report, nil
	}
	if err != nil {
		return report, storage.Failure(ctx, "examine the store", err)
	}
	report.kind, report.version = identify(info)
	report.findings = []Finding{checkVersion(report.kind, report.version)}
	settings, err := readSettings(ctx, n.Client, requiredSettings[report.kind])
	if storage.Refused(err) {
		report.findings = append(report.findings, Finding{
			Name: CheckSettings, Level: LevelWarning,
			Text:   fmt.Sprintf("CONFIG GET is refused (%v): the settings could not be examined", err),
			Remedy: "allow CONFIG GET for the user of the store's URL, or compare the settings with docs/storage.md",
		})
		return report, nil
	}
	if err != nil {
		return report, storage.Failure(ctx, "examine the store", err)
	}
	report.findings = append(report.findings, checkSettings(report.kind, report.version, settings)...)
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
