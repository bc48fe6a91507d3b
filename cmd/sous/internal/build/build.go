// Package build reports the version and the platform of the running binary.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// version is stamped by the linker (see the Makefile); a plain go build leaves it
// to the module's version.
var version string

// Info describes a build.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns the build information of the running binary.
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

// Version returns the version of the running binary, "(devel)" if it has none.
func Version() string { return Read().Version }
