package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxDepth is the largest number of slashes in an address below the console. Views have fewer.
const maxDepth = 8

// A page is the document at all addresses of one depth. It differs in the relative links to the
// files, since the server does not know the prefix that a proxy may have removed.
type page struct {
	text   []byte
	policy string
}

// loader starts the console. It is the only script that the policy admits by itself; with
// strict-dynamic it may load others, and a script element that an attacker managed to add may not,
// whatever it names: below /v1/web, tenants' functions answer on this origin too.
const loader = `{const s=document.createElement("script"),u=new URL(%q,document.baseURI).href;` +
	`s.type="module";s.src=self.trustedTypes?trustedTypes.createPolicy("console",{createScriptURL:()=>u}).createScriptURL(""):u;` +
	`document.head.append(s)}`

// policyFormat takes the hash of the loader. Trusted Types refuse every other text as the address of
// a script or as HTML: the loader makes the only policy, whose name cannot be taken again.
const policyFormat = "default-src 'none'; script-src 'sha256-%s' 'strict-dynamic'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"

var layout = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>code-sous</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{{.Root}}{{.Style}}">
</head>
<body>
<div id="app"><noscript>The console needs JavaScript. The command sous, and the API at /docs/reference, do without.</noscript></div>
<script>{{.Loader}}</script>
</body>
</html>
`))

// absentPolicy is that of the page without a console.
const absentPolicy = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var absent = template.Must(template.New("absent").Parse(`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>code-sous</title></head>
<body>
<h1>This is code-sous</h1>
<p>{{.Reason}}</p>
<p>The <a href="{{.Root}}../docs/">documentation</a> and the <a href="{{.Root}}../docs/reference">reference of the API</a> are on this server. The command <code>sous</code> does everything that the console does.</p>
</body>
</html>
`))

const notBuilt = "This program was built without its console. With node and npm installed, make build builds it in, and go build alone does not; the released programs have it."

// newPages returns the pages by depth.
func newPages(f *files) ([]page, error) {
	var pages []page
	for depth := range maxDepth + 1 {
		root := strings.Repeat("../", depth)
		if root == "" {
			root = "./"
		}
		p, err := newPage(f, root)
		if err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
		pages = append(pages, p)
	}
	return pages, nil
}

func newPage(f *files, root string) (page, error) {
	var out bytes.Buffer
	if f == nil {
		err := absent.Execute(&out, struct{ Root, Reason string }{root, notBuilt})
		return page{out.Bytes(), absentPolicy}, err
	}
	script := fmt.Sprintf(loader, root+f.Script)
	err := layout.Execute(&out, struct {
		Root, Style string
		Loader      template.JS
	}{root, f.Style, template.JS(script)}) //nolint:gosec // names of files of this binary
	sum := sha256.Sum256([]byte(script))
	return page{out.Bytes(), fmt.Sprintf(policyFormat, base64.StdEncoding.EncodeToString(sum[:]))}, err
}

// serve answers with the page. Clients ask for it each time: it names the files of one version.
func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-cache")
	sum := sha256.Sum256(p.text)
	h.Set("ETag", fmt.Sprintf("%q", base64.RawURLEncoding.EncodeToString(sum[:9])))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(p.text))
}

// root leads to the console: people open the address that sous dev prints. The text is for those who
// use curl.
func root(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "console/")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusFound)
	_, err := io.WriteString(w, "This is code-sous. /console/ has the console, /docs/ the documentation, /docs/reference the routes of the API.\n")
	return err
}

// enter leads to the first page. The address is relative, since a proxy may have removed a prefix
// that this server does not know.
func enter(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Location", "console/")
	w.WriteHeader(http.StatusPermanentRedirect)
	return nil
}
