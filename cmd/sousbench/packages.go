package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/evanw/esbuild/pkg/api"
)

// packagesFolder has the packages of npm, relative to the root of the repository, which
// `make compat` installs.
const packagesFolder = "tools/compat"

// packages compares a function of Hono and zod with hello: the throughput at
// 64 connections in one server, and the first calls of versions that it has never seen. It
// has no rows where the packages are not installed.
func packages(ctx context.Context, o options) ([]row, error) {
	source, err := bundlePackages()
	if errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "packages: %v: run make compat first\n", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "hello", helloSource, "{}"); err != nil {
		return nil, err
	}
	if err := publish(ctx, b.sous, "packages", source, "{}"); err != nil {
		return nil, err
	}
	const connections = 64
	large := load{b.sous.addr, httpGet(b.sous.addr, webPath("packages")), connections, o.seconds}
	hello := load{b.sous.addr, httpGet(b.sous.addr, webPath("hello")), connections, o.seconds}
	stopProfile := startProfile(ctx, o, "packages")
	rl, rh, err := compare(ctx, o, large, hello)
	stopProfile()
	if err != nil {
		return nil, err
	}
	share := rl.perSecond / rh.perSecond
	rows := []row{
		{name: "hello, 64 connections", value: loadText(rh)},
		{name: fmt.Sprintf("Hono + zod, %d KB, 64 connections", len(source)>>10), value: loadText(rl), want: "no error", ok: rl.errors == 0},
		{"throughput, share of hello", fmt.Sprintf("%.2f", share), "≥ 0.6", share >= 0.6},
	}
	cold, err := coldPackages(ctx, o, b, source)
	return append(rows, cold...), err
}

// coldPackages measures first calls, 50 ms apart: of versions that this server has just
// published, and of versions that a server finds in its store when it starts.
func coldPackages(ctx context.Context, o options, b *testbed, source string) ([]row, error) {
	const functions = 30
	server, err := startSous(ctx, o, b.store)
	if err != nil {
		return nil, err
	}
	for n := range functions {
		if err := publish(ctx, server, nthName(n), fmt.Sprintf("%s\n// %d", source, n), "{}"); err != nil {
			return nil, err
		}
	}
	published, err := callEach(ctx, server, functions, 50*time.Millisecond)
	server.stop()
	if err != nil {
		return nil, err
	}
	server, err = startSous(ctx, o, b.store)
	if err != nil {
		return nil, err
	}
	restarted, err := callEach(ctx, server, functions, 50*time.Millisecond)
	server.stop()
	if err != nil {
		return nil, err
	}
	p50, p99 := published.quantile(0.5), published.quantile(0.99)
	return []row{
		{"first call of a version, p50", ms(p50), "< 60 ms", p50 < 60*time.Millisecond},
		{"first call of a version, p99", ms(p99), "< 120 ms", p99 < 120*time.Millisecond && published.errors == 0},
		{name: "the same after a restart, p50", value: ms(restarted.quantile(0.5))},
		{name: "the same after a restart, p99", value: ms(restarted.quantile(0.99)), want: "no error", ok: restarted.errors == 0},
	}, nil
}

// bundlePackages returns the module that the benchmark publishes, as a build step of a user
// would make it. Errors: os.ErrNotExist without the packages.
func bundlePackages() (string, error) {
	entry := filepath.Join(packagesFolder, "bench", "function.js")
	if _, err := os.Stat(filepath.Join(packagesFolder, "node_modules", "hono")); err != nil {
		return "", err
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Outfile: "function.js", LogLevel: api.LogLevelSilent,
		Format: api.FormatESModule, Platform: api.PlatformNeutral,
		Conditions: []string{"workerd", "worker", "browser"}, MainFields: []string{"module", "main"},
		MinifySyntax: true, MinifyWhitespace: true, MinifyIdentifiers: true,
	})
	if len(result.Errors) > 0 {
		return "", fmt.Errorf("bundle %s: %s", entry, result.Errors[0].Text)
	}
	return string(result.OutputFiles[0].Contents), nil
}
