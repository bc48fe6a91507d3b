// Package build tells which build of sous runs.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is stamped by the linker (see the Makefile); a plain go build leaves it
// to the module's version.
var version string

// Info is what sous version prints.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read asks the binary itself: nothing has to be stamped into it.
func Read() Info {
	b := Info{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(version, info.Main.Version, b.Version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}

func Version() string { return Read().Version }
