package consoletest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/codesous/sous/cmd/sous/soustest"
)

// attack is markup that would run if the console made HTML of texts.
const attack = `<img src=x onerror="document.title='stolen'"><script>document.title='stolen'</script>`

// hostile logs, answers and fails with the attack, by its event.
const hostile = `export default (event) => {
	console.log("log " + ATTACK);
	cs.log.info({ html: ATTACK });
	if (event && event.fail) throw new Error("error " + ATTACK);
	return { html: ATTACK };
}`

func (b *browser) signIn(t *testing.T, key string) {
	t.Helper()
	b.do(t, "sign in", chromedp.WaitVisible("input[name=key]"), chromedp.SendKeys("input[name=key]", key), chromedp.KeyEvent("\r"))
	b.expect(t, "the console is shown", `document.querySelector(".shell") !== null`)
}

// From the first visit to an activation with its log, and the jobs of a queue; with hostile texts in
// every place that users write, and an examination of each view.
func TestStory(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.deploy(t, "hello", strings.ReplaceAll(hostile, "ATTACK", fmt.Sprintf("%q", attack)))
	in.Sous(t, "job", "enqueue", "emails", "--payload", fmt.Sprintf(`{"html": %q}`, attack), "--tag", "html=<b>")
	if out, err := in.TrySous(t, "fn", "invoke", "hello", "--event", `{"fail": true}`); err == nil {
		t.Errorf("fn invoke with an event that fails: got success and %s, want an error", out)
	}
	b := open(t, in.URL, "401 (Unauthorized)", "'TrustedHTML' assignment") // which it tries at the end

	b.do(t, "first visit", chromedp.Navigate(in.URL+"/"), chromedp.WaitVisible("input[name=key]"))
	b.expect(t, "the console answers at /console/", `location.pathname === "/console/"`)
	b.look(t, "sign-in")
	b.do(t, "a wrong key", chromedp.SendKeys("input[name=key]", in.admin[:len(in.admin)-4]+"AAAA"), chromedp.KeyEvent("\r"))
	b.shows(t, "unknown, malformed, expired or revoked")
	b.expect(t, "the field is empty", `(document.querySelector("input[name=key]").value = "") === ""`)
	b.signIn(t, in.admin)

	b.shows(t, "Busiest functions")
	b.shows(t, "error <img")
	b.look(t, "overview")
	b.press(t, "Functions")
	b.shows(t, "Calls, 24 h")
	b.look(t, "functions")
	b.press(t, "New function")
	b.do(t, "name it", chromedp.WaitVisible("dialog input"), chromedp.SendKeys("dialog input", "greet"))
	b.look(t, "function-new")
	b.do(t, "create it", chromedp.KeyEvent("\r"))
	b.expect(t, "its source is shown", `document.querySelector(".editor")?.value.includes("export default")`)
	b.do(t, "edit it", chromedp.SendKeys(".editor", "// edited"))
	b.look(t, "function-source")
	b.press(t, "Publish under prod")
	b.shows(t, "Published version 2")
	b.press(t, "Versions")
	b.expect(t, "prod is at version 2", `document.querySelector("tbody tr:first-child .tag")?.innerText === "prod"`)
	b.press(t, "Point prod here")
	b.expect(t, "the dialog is open", `document.querySelector("dialog[open]") !== null`)
	b.press(t, "Point prod here")
	b.shows(t, "prod points at version 1")
	b.press(t, "Functions")
	b.press(t, "hello")
	b.shows(t, "Settings of version 1")
	b.look(t, "function")
	b.press(t, "Invoke")
	b.expect(t, "the dialog is open", `document.querySelector("dialog[open] textarea") !== null`)
	b.look(t, "invoke")
	b.press(t, "Invoke")
	b.shows(t, "Open the activation")
	b.press(t, "Open the activation")
	b.shows(t, "log <img")
	b.shows(t, "Cold start")
	b.look(t, "activation")
	b.press(t, "Activations")
	b.shows(t, "error <img")
	b.look(t, "activations")
	b.press(t, "Queues")
	b.press(t, "emails")
	b.shows(t, "Jobs by state")
	b.look(t, "queue")
	b.expect(t, "the job can be opened", `document.querySelector("td a.name") !== null`)
	b.do(t, "open the job", chromedp.Click("td a.name"))
	b.shows(t, "Timeline")
	b.look(t, "job")
	b.press(t, "Cancel job")
	b.look(t, "job-cancel")
	b.press(t, "Cancel job")
	b.shows(t, "Cancelled")
	b.press(t, "Retry")
	b.expect(t, "the dialog is open", `document.querySelector("dialog[open]") !== null`)
	b.press(t, "Retry")
	b.shows(t, "Pending")
	b.press(t, "Queues")
	b.shows(t, "Oldest waiting")
	b.look(t, "queues")
	for _, tab := range []string{"Versions", "Logs", "Triggers"} {
		b.do(t, "open "+tab, chromedp.Navigate(in.URL+"/console/"+tenant+"/default/functions/hello?tab="+strings.ToLower(tab)))
		b.expect(t, tab+" is loaded", `document.querySelector("main .scroll, main .empty, main .log") !== null`)
		b.look(t, "function-"+strings.ToLower(tab))
	}
	if title := value[string](t, b, "document.title"); strings.Contains(title, "stolen") {
		t.Errorf("the title: got %q, want that no text of a user ran as a script", title)
	}
	if made := value[int](t, b, `document.querySelectorAll("main img, main script").length`); made != 0 {
		t.Errorf("elements made of texts: got %d, want none", made)
	}
	if got := value[string](t, b, `(() => { try { document.body.innerHTML = "<b>x</b>"; return "set"; } catch (e) { return e.name; } })()`); got != "TypeError" {
		t.Errorf("HTML made of a text: got %s, want a TypeError of Trusted Types", got)
	}
}

// The palette reaches views and resources by keyboard alone.
func TestPaletteAndKeyboard(t *testing.T) {
	t.Parallel()
	server := startDev(t)
	deploy(t, server, "hello", `export default () => "hi";`)
	b := open(t, server.URL)
	b.do(t, "open", chromedp.Navigate(server.URL+"/console/"))
	b.shows(t, "Local administrator")
	b.expect(t, "the address has the place", `location.pathname === "/console/t_default/default"`)
	b.do(t, "open the palette", chromedp.Evaluate[chromedp.Void](`dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true }))`))
	b.expect(t, "the palette is open", `document.activeElement?.getAttribute("role") === "combobox"`)
	b.expect(t, "the palette has names", `[...document.querySelectorAll("[role=option]")].some((e) => e.innerText.startsWith("hello"))`)
	b.look(t, "palette")
	b.do(t, "choose", chromedp.KeyEvent("hel"), chromedp.KeyEvent("\r"))
	b.expect(t, "the function is open", `location.pathname.endsWith("/functions/hello")`)
	b.do(t, "back", chromedp.Evaluate[chromedp.Void](`history.back()`))
	b.expect(t, "the overview is back", `location.pathname === "/console/t_default/default"`)
	b.do(t, "an address without a view", chromedp.Navigate(server.URL+"/console/t_default/default/nothing"))
	b.shows(t, "There is no view at this address")
}

func startDev(t *testing.T) *soustest.Server {
	t.Helper()
	server, err := soustest.Command{Args: []string{"dev", "--data-dir", t.TempDir()}}.Start(executable(t))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return server
}

// Without functions the views say what to do.
func TestEmptyViews(t *testing.T) {
	t.Parallel()
	server := startDev(t)
	b := open(t, server.URL, "404 (Not Found)") // the tenant does not exist yet
	for view, text := range map[string]string{
		"": "Welcome to code-sous", "functions": "No functions in this namespace yet", "activations": "No activations match", "queues": "No queues in this namespace yet",
	} {
		b.do(t, "open "+view, chromedp.Navigate(server.URL+"/console/t_default/default/"+view))
		b.shows(t, text)
		b.look(t, "empty-"+view)
	}
}

// A viewer sees everything and changes nothing, also by requests that its page does not make.
func TestViewerChangesNothing(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.deploy(t, "hello", `export default () => "hi";`)
	in.Sous(t, "job", "enqueue", "emails", "--payload", `{}`)
	key, _ := in.key(t, "reader", "viewer")
	b := open(t, in.URL, "401 (Unauthorized)", "403 (Forbidden)")
	b.do(t, "open", chromedp.Navigate(in.URL+"/console/"+tenant+"/default/functions/hello"))
	b.signIn(t, key)
	b.shows(t, "Settings of version 1") // the address is kept over the sign-in
	for _, at := range []string{"functions/hello", "functions/hello?tab=versions", "queues/emails"} {
		b.do(t, "open "+at, chromedp.Navigate(in.URL+"/console/"+tenant+"/default/"+at))
		b.expect(t, at+" is loaded", `document.querySelector("main .card, main .scroll") !== null`)
		if n := value[int](t, b, `[...document.querySelectorAll("main .heading button, main .row-actions button")].length`); n != 0 {
			t.Errorf("%s: got %d buttons that change something, want none", at, n)
		}
	}
	status := value[int](t, b, `(async () => {
		const { token } = await (await fetch("/console/api/session")).json();
		const answer = await fetch("/console/api/v1/tenants/`+tenant+`/namespaces/default/functions/hello/aliases/prod", {
			method: "DELETE", headers: { "x-sous-token": token } });
		return answer.status;
	})()`)
	if status != 403 {
		t.Errorf("a hand-made request of a viewer: got status %d, want 403", status)
	}
}

// The session of a revoked key ends in the open page, and signing out ends it everywhere.
func TestEndsOfSessions(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.deploy(t, "hello", `export default () => "hi";`)
	key, id := in.key(t, "reader", "viewer")
	b := open(t, in.URL, "401 (Unauthorized)")
	b.do(t, "open", chromedp.Navigate(in.URL+"/console/"))
	b.signIn(t, key)
	b.press(t, "Functions")
	b.shows(t, "hello")
	in.Sous(t, "keys", "revoke", id, "--yes")
	b.press(t, "Activations")
	b.shows(t, "You were signed out")
	b.signIn(t, in.admin)
	b.expect(t, "the account can be opened", `document.querySelector(".account button") !== null`)
	b.do(t, "open the account", chromedp.Click(".account button"))
	b.look(t, "account")
	b.press(t, "Sign out")
	b.do(t, "wait", chromedp.WaitVisible("input[name=key]"))
	b.do(t, "reload", chromedp.Navigate(in.URL+"/console/"), chromedp.WaitVisible("input[name=key]"))
}

// A page whose server is killed says so, and goes on when it is back.
func TestServerKilledAndBack(t *testing.T) {
	t.Parallel()
	in := install(t)
	in.deploy(t, "hello", `export default () => "hi";`)
	b := open(t, in.URL, "ERR_", "503", "502")
	b.do(t, "open", chromedp.Navigate(in.URL+"/console/"))
	b.signIn(t, in.admin)
	b.press(t, "Functions")
	b.shows(t, "hello")
	if err := in.Kill(); err != nil {
		t.Fatalf("Kill: %v", err)
	}
	b.shows(t, "The server is not reachable")
	b.look(t, "unreachable")
	time.Sleep(time.Second) // the page tries in vain meanwhile
	in.start(t, strings.TrimPrefix(in.URL, "http://"))
	b.expect(t, "the page goes on", `!document.body.innerText.includes("The server is not reachable") && document.body.innerText.includes("hello")`)
}
