package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/codesous/sous/api/sleep"
)

// instances compares hello in the global scope of an instance with hello in a fresh scope
// for each activation, at 64 connections in one server, and reports the memory of a warm
// instance of hello and, where its packages are installed, of Hono and zod.
func instances(ctx context.Context, o options) ([]row, error) {
	b, err := newTestbed(ctx, o, profileArgs(o)...)
	if err != nil {
		return nil, err
	}
	defer b.close()
	for name, config := range map[string]string{"kept": `{"isolation":"instance"}`, "fresh": `{"isolation":"activation"}`} {
		if err := publish(ctx, b.sous, name, helloSource, config); err != nil {
			return nil, err
		}
	}
	to := func(name string) load { return load{b.sous.addr, httpGet(b.sous.addr, webPath(name)), 64, o.seconds} }
	kept, fresh, err := compare(ctx, o, to("kept"), to("fresh"))
	if err != nil {
		return nil, err
	}
	share := kept.perSecond / fresh.perSecond
	rows := []row{
		{name: "hello, fresh scope, 64 connections", value: loadText(fresh), want: "no error", ok: fresh.errors == 0},
		{name: "hello, instance, 64 connections", value: loadText(kept), want: "no error", ok: kept.errors == 0},
		{"throughput of instances, multiple", fmt.Sprintf("%.2f", share), "≥ 1.2", share >= 1.2},
	}
	sources := []struct{ name, source string }{{"hello", helloSource}}
	source, err := bundlePackages()
	switch {
	case err == nil:
		sources = append(sources, struct{ name, source string }{"Hono + zod", source})
	case !errors.Is(err, os.ErrNotExist):
		return rows, err
	}
	for _, s := range sources {
		size, err := instanceMemory(ctx, o, s.source)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{name: "memory of a warm instance, " + s.name, value: fmt.Sprintf("%.1f MiB", float64(size)/(1<<20)), ok: true})
	}
	return rows, nil
}

// instanceMemory returns by how many bytes the sandboxes of a server grow when one instance
// of source has served calls, one after the other, for two seconds. The sandbox that the
// instance took has been replaced by another spare one then.
func instanceMemory(ctx context.Context, o options, source string) (int64, error) {
	b, err := newTestbed(ctx, o)
	if err != nil {
		return 0, err
	}
	defer b.close()
	if err := publish(ctx, b.sous, "warm", source, "{}"); err != nil {
		return 0, err
	}
	if err := sleep.For(ctx, time.Second); err != nil { // the spare sandboxes start
		return 0, err
	}
	before, children, err := b.sous.childrenMemory()
	if err != nil {
		return 0, err
	}
	r, err := (load{b.sous.addr, httpGet(b.sous.addr, webPath("warm")), 1, 2 * time.Second}).run(ctx)
	if err != nil {
		return 0, err
	}
	after, now, err := b.sous.childrenMemory()
	if err != nil {
		return 0, err
	}
	if r.errors > 0 || now != children+1 {
		return 0, fmt.Errorf("instance memory: %d errors, and %d sandboxes after %d, want one more", r.errors, now, children)
	}
	return after - before, nil
}
