package bundler

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// A Package is a package in a bundle.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"` // "" if its package.json names none
	Bytes   int64  `json:"bytes"`             // of its modules in the bundle
}

// metafile is the part of esbuild's description of a build that matters here.
type metafile struct {
	Outputs map[string]struct {
		Inputs map[string]struct {
			BytesInOutput int64 `json:"bytesInOutput"`
		} `json:"inputs"`
	} `json:"outputs"`
}

// contents sums the bytes of the folder's own modules and those of each package.
func (b *build) contents(meta metafile) (own int64, packages []Package) {
	sizes := map[string]int64{} // by the folder of a package
	for _, out := range meta.Outputs {
		for input, in := range out.Inputs {
			if dir := packageFolder(input); dir != "" {
				sizes[dir] += in.BytesInOutput
			} else {
				own += in.BytesInOutput
			}
		}
	}
	merged := map[Package]int64{} // npm may install one version of a package in several folders
	for dir, n := range sizes {
		p := Package{Name: dir[strings.LastIndex(dir, packagesFolder+"/")+len(packagesFolder)+1:]}
		if m := readManifest(filepath.Join(b.root, filepath.FromSlash(dir))); m != nil {
			p.Version = m.Version
		}
		merged[p] += n
	}
	for p, n := range merged {
		p.Bytes = n
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return own, packages
}

// packageFolder returns the folder of the package that an input file belongs to, "" for a
// file of no package.
func packageFolder(input string) string {
	at := strings.LastIndex("/"+input, "/"+packagesFolder+"/")
	if at < 0 {
		return ""
	}
	from := at + len(packagesFolder) + 1
	return input[:from] + packageName(input[from:])
}

// packageName returns the name of the package that an import of path means.
func packageName(path string) string {
	scope, rest, scoped := strings.Cut(path, "/")
	if !scoped || !strings.HasPrefix(path, "@") {
		return scope
	}
	name, _, _ := strings.Cut(rest, "/")
	return scope + "/" + name
}
