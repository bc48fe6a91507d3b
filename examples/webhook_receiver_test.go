package examples

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/webhook"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/cmd/sous/soustest"
	"github.com/codesous/sous/invoker/sandbox/sandboxtest"
)

// The receiver verifies the deliveries of a server, prints an event once although it is delivered
// twice, accepts deliveries after a rotation by the secret before it, and refuses others.
func TestWebhookReceiver(t *testing.T) {
	t.Parallel()
	server := soustest.Start(t, "--egress-allow", "loopback")
	secret := regexp.MustCompile(`whsec_[0-9A-Za-z+/=]+`)
	// The receiver needs the secret, and chooses its port when it has it.
	first := secret.FindString(server.Sous(t, "webhook", "create", "local", "http://127.0.0.1:1/", "--event", "job.*"))
	second := secret.FindString(server.Sous(t, "webhook", "rotate", "local"))
	if first == "" || second == "" || first == second {
		t.Fatalf("webhook create and rotate: got %d and %d bytes of secrets, want two secrets", len(first), len(second))
	}
	url, said := startReceiver(t, first)
	server.Sous(t, "webhook", "update", "local", "--url", url)
	hook := tenant(t, server).Webhook("local")
	event := strings.TrimSpace(server.Sous(t, "webhook", "test", "local"))
	line := "webhook.test webhooks/local " + event
	attempts := delivered(t, hook, 1)
	if got := said.String(); !strings.Contains(got, line) {
		t.Errorf("got the output\n%s\nwant the line %s", got, line)
	}
	if _, err := hook.Redeliver(t.Context(), attempts[0].ID); err != nil {
		t.Fatalf("Redeliver: %v", err)
	}
	delivered(t, hook, 2)
	if n := strings.Count(said.String(), line); n != 1 {
		t.Errorf("got the event %d times after a second delivery, want once in\n%s", n, said.String())
	}
	const refused = "the signature does not verify\n"
	forged := map[string]string{webhook.HeaderID: "1-0.0", webhook.HeaderTimestamp: fmt.Sprint(time.Now().Unix()), webhook.HeaderSignature: "v1,bm90IHNpZ25lZA=="}
	for _, header := range []map[string]string{nil, forged} {
		call{"POST", "", header, `{"id":"1-0.0","type":"job.dead"}`, 401, refused}.do(t, url)
	}
	if got := said.String(); strings.Contains(got, "job.dead") || strings.Contains(got, "whsec_") {
		t.Errorf("got the output\n%s\nwant no event that is not signed, and no secret", got)
	}
}

// startReceiver runs the example until the test ends. It returns its URL and its output.
func startReceiver(t *testing.T, secrets string) (url string, said *output) {
	t.Helper()
	said = &output{}
	cmd := exec.Command(sandboxtest.Build(t, "github.com/codesous/sous/examples/webhook-receiver"), "-listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "WEBHOOK_SECRET="+secrets)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the process may have ended
		_ = cmd.Wait()         // it was killed
	})
	at := regexp.MustCompile(`listening on (http://\S+)\n`)
	platformtest.Eventually(t, 30*time.Second, "the receiver listens", func() error {
		found := at.FindStringSubmatch(said.String())
		if found == nil {
			return errors.New(said.String())
		}
		url = found[1]
		return nil
	})
	return url, said
}

// delivered waits until the webhook has n attempts, and checks that all succeeded.
func delivered(t *testing.T, hook *client.Webhook, n int) (attempts []webhook.Delivery) {
	t.Helper()
	platformtest.Eventually(t, time.Minute, "attempts are in the log", func() error {
		page, err := hook.Deliveries(t.Context(), client.PageOptions{})
		attempts = page.Items
		if err == nil && len(attempts) < n {
			err = fmt.Errorf("%d of %d", len(attempts), n)
		}
		return err
	})
	for _, a := range attempts {
		if a.Result != webhook.Delivered {
			t.Errorf("got the attempt %+v, want a success", a)
		}
	}
	return attempts
}
