package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codesous/sous/api"
)

// misspeltServer has names, which it lists, and does not find what a command asks for.
type misspeltServer struct {
	code    api.Code // of every other answer
	message string
	list    func(http.ResponseWriter, *http.Request) bool // answers a list in another way

	mu     sync.Mutex
	listed []string // the paths of the lists, below the tenant
}

// lists are the items of each list by its path below the tenant t_default.
var lists = map[string]string{
	"namespaces":                                 `{"namespace":"default"},{"namespace":"staging"}`,
	"namespaces/default/functions":               `{"name":"goodbye"},{"name":"hello"}`,
	"namespaces/default/functions/hello/aliases": `{"alias":"prod","version":1}`,
	"namespaces/default/queues":                  `{"queue":"mail"}`,
	"namespaces/default/triggers":                `{"queue":"orders"}`,
	"namespaces/default/schedules":               `{"name":"nightly"}`,
	"namespaces/default/secrets":                 `{"name":"API_KEY"}`,
	"namespaces/default/cadence/workers":         `{"name":"payments"}`,
	"namespaces/default/kv":                      `{"key":"session"}`,
	"namespaces/stagin/functions":                ``,
	"domains":                                    `{"domain":"shop.example.org"}`,
	"tasks":                                      `{"task_type":"resize","task_id":"photo-1"}`,
	"installs":                                   `{"install":"website","description":"pages"}`,
	"installs/website/storage/namespaces":        `{"namespace":"accounts"}`,
}

// ServeHTTP implements http.Handler.
func (s *misspeltServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path, _ := strings.CutPrefix(r.URL.Path, "/v1/tenants/t_default/")
	items, ok := lists[path]
	if ok && r.Method == http.MethodGet {
		s.mu.Lock()
		s.listed = append(s.listed, path)
		s.mu.Unlock()
		if s.list == nil || !s.list(w, r) {
			_, _ = fmt.Fprintf(w, `{"items":[%s],"next_cursor":null}`, items)
		}
		return
	}
	w.WriteHeader(http.StatusNotFound)
	_, _ = fmt.Fprintf(w, `{"code":%q,"detail":%q,"request_id":"req_1"}`, s.code, s.message)
}

// seen returns the lists that were asked for. A handler may still run when the command has ended.
func (s *misspeltServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listed)
}

// run returns what a command of this server prints on stderr.
func (s *misspeltServer) run(t *testing.T, line string) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	var out, errors bytes.Buffer
	if code := Run(t.Context(), append(strings.Fields(line), "--url", server.URL, "--tenant", "t_default"), strings.NewReader(""), &out, &errors); code != 1 {
		t.Errorf("sous %s: got exit code %d, want 1", line, code)
	}
	return errors.String()
}

func TestMisspeltNamesGetASuggestion(t *testing.T) {
	t.Parallel()
	const none = ""
	for line, tc := range map[string]struct {
		code          api.Code
		message, want string
	}{
		"fn get helo":                       {api.CodeFunctionNotFound, `function "helo" does not exist`, `"hello"`},
		"fn logs helllo":                    {api.CodeFunctionNotFound, `function "helllo" does not exist`, `"hello"`},
		"open helo":                         {api.CodeFunctionNotFound, `function "helo" does not exist`, `"hello"`},
		"trigger set mail helo":             {api.CodeFunctionNotFound, `function "helo" does not exist`, `"hello"`},
		"fn get shop":                       {api.CodeFunctionNotFound, `function "shop" does not exist`, none},
		"fn get hello":                      {api.CodeFunctionNotFound, `function "hello" does not exist`, none}, // created meanwhile
		"fn get helo -o json":               {api.CodeFunctionNotFound, `function "helo" does not exist`, `\"hello\"`},
		"fn get hello --namespace stagin":   {api.CodeFunctionNotFound, `function "hello" does not exist`, "--namespace staging"},
		"fn invoke hello --ref prodd":       {api.CodeAliasNotFound, `alias "prodd" does not exist`, `"prod"`},
		"fn alias delete hello porod --yes": {api.CodeAliasNotFound, `alias "porod" does not exist`, `"prod"`},
		"schedule create x --every 1m --function hello --ref prodd --payload 1": {api.CodeAliasNotFound, `alias "prodd" does not exist`, `"prod"`},
		"fn invoke hello --ref prdo":                    {api.CodeAliasNotFound, `alias "prdo" does not exist`, none}, // two of four characters differ
		"queue get mial":                                {api.CodeQueueNotFound, `queue "mial" does not exist`, none}, // two of four characters differ
		"queue get mails":                               {api.CodeQueueNotFound, `queue "mails" does not exist`, `"mail"`},
		"trigger get order":                             {api.CodeTriggerNotFound, `queue "order" has no trigger`, `"orders"`},
		"schedule get nightl":                           {api.CodeScheduleNotFound, `schedule "nightl" does not exist`, `"nightly"`},
		"secret show API_KEI":                           {api.CodeSecretNotFound, `secret "API_KEI" does not exist`, `"API_KEY"`},
		"cadence worker get payment":                    {api.CodeBindingNotFound, `worker binding "payment" does not exist`, `"payments"`},
		"kv get sesion":                                 {api.CodeKVNotFound, `key "sesion" does not exist`, `"session"`},
		"domain get shop.exampel.org":                   {api.CodeDomainNotFound, "the tenant has no domain shop.exampel.org", `"shop.example.org"`},
		"task get resise photo-1":                       {api.CodeTaskNotFound, "task resise/photo-1 does not exist", `"resize/photo-1"`},
		"owner get websit":                              {api.CodeDocumentNotFound, `install "websit" does not exist`, `"website"`},
		"storage get acounts website --install website": {api.CodeDocumentNotFound, `document "website" does not exist`, `"accounts"`},
	} {
		s := &misspeltServer{code: tc.code, message: tc.message}
		got := s.run(t, line)
		text := tc.message
		if tc.want != none {
			text += "; did you mean " + tc.want + "?"
		}
		if strings.Contains(line, "json") {
			text = strings.ReplaceAll(text, `"helo"`, `\"helo\"`)
		}
		if !strings.Contains(got, text) || tc.want == none && strings.Contains(got, "did you mean") || !strings.Contains(got, "req_1") {
			t.Errorf("sous %s: got %q, want it to contain %q and the id of the request", line, got, text)
		}
		most := 1
		if strings.Contains(line, "--namespace") {
			most = 2 // at the same time
		}
		if listed := s.seen(); len(listed) > most {
			t.Errorf("sous %s: got the lists %v, want at most %d", line, listed, most)
		}
	}
}

// TestTheErrorStaysWithoutAList: a key that may not list the names, and a server that does not
// answer, leave the error as it is, after a second at most.
func TestTheErrorStaysWithoutAList(t *testing.T) {
	t.Parallel()
	for name, list := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"refused": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"code":"CS_AUTHZ_DENIED","detail":"no role allows it"}`))
			return true
		},
		"overloaded": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"code":"CS_OVERLOADED","detail":"busy"}`))
			return true
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"broken": func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte(`{"items":`)); return true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &misspeltServer{code: api.CodeFunctionNotFound, message: `function "helo" does not exist`, list: list}
			begin := time.Now()
			got := s.run(t, "fn get helo")
			if want := "error: CS_FUNCTION_NOT_FOUND: function \"helo\" does not exist (request req_1)\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if took := time.Since(begin); took > 10*time.Second || len(s.seen()) != 1 {
				t.Errorf("got the lists %v in %s, want 1 and an end after about a second", s.seen(), took)
			}
		})
	}
}
