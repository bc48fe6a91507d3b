// Package build reports the version and the platform of the running binary.
package build

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
)

// Release is the semantic version of the next release, which make release stamps. The
// binaries before it are its development versions.
const Release = "0.2.0"

// version is the version that the linker stamps (see the Makefile), "" for a development
// version.
var version string

// Info describes a build.
type Info struct {
	Version  string `json:"version"` // a semantic version
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Read returns the build information of the running binary.
func Read() Info {
	b := Info{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = unstamped(info.Main.Version, b.Revision, modified)
	}
	return b
}

// released matches the version of a module whose source is that of a release.
var released = regexp.MustCompile(`^v(\d+\.\d+\.\d+)$`)

// unstamped returns the version of a binary that make did not stamp: that of its module for
// `go install …@v1.2.3`, and a development version such as 1.2.3-dev+1a2b3c4.modified else.
func unstamped(module, revision string, modified bool) string {
	if tag := released.FindStringSubmatch(module); tag != nil {
		return tag[1]
	}
	var metadata []string
	if revision != "" {
		metadata = append(metadata, revision[:min(len(revision), 7)])
	}
	if modified {
		metadata = append(metadata, "modified")
	}
	v := Release + "-dev"
	if len(metadata) > 0 {
		v += "+" + strings.Join(metadata, ".")
	}
	return v
}

// Version returns the version of the running binary.
func Version() string { return Read().Version }
