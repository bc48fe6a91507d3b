package server

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no cgroups", fstest.MapFS{}, math.MaxInt64},
		{"a container, v2", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n")}, 512 << 20},
		{"no limit, v2", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, math.MaxInt64},
		{"a systemd unit", fstest.MapFS{
			"proc/self/cgroup":                                    file("0::/system.slice/sous.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":               file("max\n"),
			"sys/fs/cgroup/system.slice/sous.service/memory.max":  file("1073741824\n"),
			"sys/fs/cgroup/system.slice/other.service/memory.max": file("1\n"),
		}, 1 << 30},
		{"a slice above it", fstest.MapFS{
			"proc/self/cgroup":                                   file("0::/system.slice/sous.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":              file("268435456\n"),
			"sys/fs/cgroup/system.slice/sous.service/memory.max": file("1073741824\n"),
		}, 256 << 20},
		{"v1", fstest.MapFS{
			"proc/self/cgroup": file("11:cpu,cpuacct:/x\n9:memory:/docker/abc\n0::/unused\n"),
			"sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": file("2147483648\n"),
		}, 2 << 30},
		{"v1 in a container", fstest.MapFS{
			"proc/self/cgroup":                           file("9:memory:/docker/abc\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("2147483648\n"),
		}, 2 << 30},
	} {
		got, err := cgroupMemory(tt.root)
		if got != tt.want || err != nil {
			t.Errorf("%s: cgroupMemory = %d, %v, want %d", tt.name, got, err, tt.want)
		}
	}
}

func TestServerShare(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	for _, tt := range []struct{ memory, sandboxes, want int64 }{
		{10 * gib, 5 * gib, 5*gib - 5*gib/10},
		{4 * gib, 4 * gib, gib - gib/10}, // a fourth at least
		{512 * mib, 480 * mib, 128 * mib},
	} {
		if got := serverShare(tt.memory, tt.sandboxes); got != tt.want {
			t.Errorf("serverShare(%d MiB, %d MiB) = %d MiB, want %d", tt.memory/mib, tt.sandboxes/mib, got/mib, tt.want/mib)
		}
	}
}
