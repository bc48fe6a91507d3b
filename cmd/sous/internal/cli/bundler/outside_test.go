package bundler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codesous/sous/api"
)

// TestBundlesStayInTheirRepository: the folder of a function may be someone else's, and must not
// publish files of the machine that deploys it.
func TestBundlesStayInTheirRepository(t *testing.T) {
	t.Parallel()
	const imports = `import s from "../x.json"; export default s;`
	for name, tt := range map[string]struct {
		files   map[string]string // the function is in repo/fn
		links   map[string]string // to paths below the folder of the files
		allow   bool
		refused string // the text after the place, "" if it is bundled
	}{
		"a file above":              {files: map[string]string{"repo/fn/function.js": imports, "repo/x.json": `1`}, refused: `the import "../x.json" leads to ALL/repo/x.json, which is outside of ALL/repo/fn: `},
		"an absolute path":          {files: map[string]string{"repo/fn/function.js": `import s from "ALL/x.json"; export default s;`, "x.json": `1`}, refused: `the import "ALL/x.json" leads to `},
		"a require":                 {files: map[string]string{"repo/fn/function.js": `module.exports = require("ALL/x.json");`, "x.json": `1`}, refused: `the import "ALL/x.json" leads to `},
		"a link in the folder":      {files: map[string]string{"repo/fn/function.js": `import s from "./x.json"; export default s;`, "x.json": `1`}, links: map[string]string{"repo/fn/x.json": "x.json"}, refused: `the import "./x.json" leads to ALL/x.json`},
		"a linked entry":            {files: map[string]string{"repo/fn/package.json": `{}`, "x.js": `export default 1;`}, links: map[string]string{"repo/fn/function.js": "x.js"}, refused: `the entry leads to ALL/x.js`},
		"paths of a tsconfig":       {files: map[string]string{"repo/fn/function.js": `import s from "@/x.json"; export default s;`, "repo/fn/tsconfig.json": `{"compilerOptions": {"paths": {"@/*": ["../../*"]}}}`, "x.json": `1`}, refused: `the import "@/x.json" leads to `},
		"packages elsewhere":        {files: map[string]string{"repo/fn/function.js": `import s from "../../other/node_modules/a/x.json"; export default s;`, "other/node_modules/a/x.json": `1`}, refused: `the import "../../other/node_modules/a/x.json" leads to `},
		"a link that is no package": {files: map[string]string{"repo/fn/function.js": `import s from "a/x.json"; export default s;`, "repo/fn/node_modules/b/index.js": ``, "secrets/x.json": `1`}, links: map[string]string{"repo/fn/node_modules/a": "secrets"}, refused: `the import "a/x.json" leads to `},
		"the twin of a module":      {files: map[string]string{"repo/fn/function.js": `import s from "a/x.browser.js"; export default s;`, "repo/fn/node_modules/a/x.browser.js": `new DOMParser();`, "x.js": `export default 1;`}, links: map[string]string{"repo/fn/node_modules/a/x.js": "x.js"}, refused: `the import "a/x.browser.js" leads to ALL/x.js`},
		"settings of sous":          {files: map[string]string{"repo/fn/function.js": `import s from "../../private/p.json"; export default s;`, "private/p.json": `1`}, allow: true, refused: `the import "../../private/p.json" leads to the settings of sous`},

		"allowed":                {files: map[string]string{"repo/fn/function.js": imports, "repo/x.json": `1`}, allow: true},
		"in the repository":      {files: map[string]string{"repo/fn/function.js": imports, "repo/fn/package.json": `{}`, "repo/x.json": `1`, "repo/.git/HEAD": ``}},
		"in the workspaces":      {files: map[string]string{"repo/fn/function.js": imports, "repo/package.json": `{"workspaces": ["fn"]}`, "repo/fn/package.json": `{}`, "repo/x.json": `1`}},
		"in the package":         {files: map[string]string{"repo/fn/function.js": imports, "repo/package.json": `{}`, "repo/x.json": `1`}},
		"in workspaces of pnpm":  {files: map[string]string{"repo/fn/function.js": imports, "repo/pnpm-workspace.yaml": ``, "repo/x.json": `1`}},
		"a package above":        {files: map[string]string{"repo/fn/function.js": `import s from "a"; export default s;`, "repo/fn/.git": ``, "node_modules/a/index.js": `export default 1;`}},
		"npm link":               {files: map[string]string{"repo/fn/function.js": `import s from "a"; export default s;`, "repo/fn/.git": ``, "work/a/package.json": `{}`, "work/a/index.js": `import b from "b"; export default b;`, "work/a/node_modules/b/index.js": `export default 1;`}, links: map[string]string{"repo/fn/node_modules/a": "work/a"}},
		"a store of pnpm":        {files: map[string]string{"repo/fn/function.js": `import s from "@s/a"; export default s;`, "store/a/node_modules/@s/a/package.json": `{}`, "store/a/node_modules/@s/a/index.js": `export { default } from "b";`, "store/b/node_modules/b/package.json": `{}`, "store/b/node_modules/b/index.js": `export default 1;`}, links: map[string]string{"repo/fn/node_modules/@s/a": "store/a/node_modules/@s/a", "store/a/node_modules/b": "store/b/node_modules/b"}},
		"a link in a workspace":  {files: map[string]string{"repo/fn/function.js": `import s from "a"; export default s;`, "repo/.git/HEAD": ``, "repo/a/index.js": `export default 1;`}, links: map[string]string{"repo/fn/node_modules/a": "repo/a"}},
		"a link inside":          {files: map[string]string{"repo/fn/function.js": `import s from "./x.json"; export default s;`, "repo/.git/HEAD": ``, "repo/y.json": `1`}, links: map[string]string{"repo/fn/x.json": "repo/y.json"}},
		"a named export allowed": {files: map[string]string{"repo/fn/function.js": `import s from "../x.txt"; export default s;`, "repo/.git/HEAD": ``, "repo/x.txt": `1`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatalf("filepath.EvalSymlinks: %v", err)
			}
			for path, text := range tt.files {
				path = filepath.Join(all, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatalf("os.MkdirAll: %v", err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "ALL", all)), 0o600); err != nil {
					t.Fatalf("os.WriteFile: %v", err)
				}
			}
			for link, to := range tt.links {
				link = filepath.Join(all, link)
				if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
					t.Fatalf("os.MkdirAll: %v", err)
				}
				if err := os.Symlink(filepath.Join(all, to), link); err != nil {
					t.Fatalf("os.Symlink: %v", err)
				}
			}
			b, err := Make(Folder{Root: filepath.Join(all, "repo/fn"), Entry: "function.js", AllowOutside: tt.allow, Private: filepath.Join(all, "private")})
			if tt.refused == "" {
				if b == nil || err != nil {
					t.Errorf("Make: got %v, %v; want a bundle", b, err)
				}
				return
			}
			if want := strings.ReplaceAll(tt.refused, "ALL", all); b != nil || api.ErrorCode(err) != api.CodeValidationSource || !strings.Contains(err.Error(), want) {
				t.Errorf("Make: got %v, %v; want nil and an error with %q", b, err, want)
			}
		})
	}
}

// TestHomeIsNoRepository: a package.json or a .git of the home folder does not make its files
// part of a function.
func TestHomeIsNoRepository(t *testing.T) {
	t.Parallel()
	root, err := filepath.EvalSymlinks(write(t, map[string]string{"home/.git/HEAD": "", "home/package.json": "{}", "home/fn/function.js": "", "home/app/package.json": "{}", "home/app/fn/function.js": ""}))
	if err != nil {
		t.Fatalf("filepath.EvalSymlinks: %v", err)
	}
	r := &reach{home: filepath.Join(root, "home")}
	for dir, want := range map[string]string{"home/fn": "home/fn", "home/app/fn": "home/app"} {
		if got := r.repository(filepath.Join(root, dir)); got != filepath.Join(root, want) {
			t.Errorf("repository(%s): got %s, want %s", dir, got, filepath.Join(root, want))
		}
	}
}
