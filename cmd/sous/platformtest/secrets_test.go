package platformtest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/platformtest"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/access"
	"github.com/codesous/sous/storage/secrets"
	"github.com/codesous/sous/storage/storagetest"
)

// Two replicas, a secret, and functions that log it, throw it and fetch with it: the
// second replica sees each change within a second, the key is rotated under both, and
// the value is in no output of theirs, at their most talkative, nor in the store.
func TestSecretsOnTwoReplicas(t *testing.T) {
	t.Parallel()
	redis := storagetest.Redis(t)
	key := secretsKey(t)
	config := platformtest.Config{Store: redis.URL, Args: []string{"--secrets-key-file", key, "--log-level", "debug"}}
	one, two := config.Serve(t), config.Serve(t)
	ns := one.API(t).Namespace(platformtest.Namespace)
	set := func(value string) {
		t.Helper()
		if _, err := ns.Secret("stripe").Set(t.Context(), value, client.SecretCondition{}); err != nil {
			t.Fatalf("Set: %v", err)
		}
	}
	const part = "hunter2hunter2"
	set(part + "-0")
	one.Publish(t, "pay", `{"capabilities": {"secrets": ["stripe"], "http": {"allowHosts": ["*"]}}}`, map[string]string{"function.js": `export default async (event) => {
  const value = await cs.secrets.get("stripe");
  console.log("it is", value, { value });
  await fetch("http://127.0.0.1:1/?key=" + value, { headers: { authorization: value } }).catch((e) => console.log(e));
  if (value.endsWith("2") && !event.headers["x-again"]) throw new Error(value);
  return value.slice(-2);
};`})
	last := func(s *platformtest.Server) string {
		t.Helper()
		a, err := s.Web(t.Context(), "pay", nil)
		if err == nil && a.Status >= 500 { // it threw what it read
			a, err = s.Web(t.Context(), "pay", map[string]string{"X-Again": "1"})
		}
		if err != nil {
			t.Fatalf("Web: %v", err)
		}
		return strings.Trim(a.Body, "\"\n")
	}
	if last(one) != "-0" || last(two) != "-0" {
		t.Fatal("a replica does not see the secret, want its value")
	}
	for i := range 3 {
		set(fmt.Sprint(part, "-", i+1))
		began := time.Now()
		platformtest.Eventually(t, 5*time.Second, "the other replica sees the change", func() error {
			if got := last(two); got != fmt.Sprint("-", i+1) {
				return errors.New("it has " + got)
			}
			return nil
		})
		if took := time.Since(began); took > time.Second {
			t.Errorf("the new value was visible after %s, want sooner", took)
		}
	}
	if _, err := secrets.Rotate(key, time.Now()); err != nil {
		t.Fatalf("Rotate: %v", err)
	}
	platformtest.Eventually(t, 10*time.Second, "the servers have the new key", func() error {
		report, err := one.API(t).RewrapSecrets(t.Context(), "")
		if err == nil && report.Rewrapped != 1 {
			err = fmt.Errorf("%+v", report)
		}
		return err
	})
	set(part + "-9")
	platformtest.Eventually(t, 5*time.Second, "the other replica opens what the new key sealed", func() error {
		if got := last(two); got != "-9" {
			return errors.New("it has " + got)
		}
		return nil
	})
	for _, s := range []*platformtest.Server{one, two} {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if out := s.Output(); strings.Contains(out, "hunter2") || strings.Contains(out, "AGE-SECRET-KEY-1") || !strings.Contains(out, "pay") {
			t.Errorf("got the secret in the output of a server, or no mention of pay; want only pay in\n%s", out)
		}
	}
	checkStoreHolds(t, redis.URL, "hunter2")
	store := storagetest.Open(t, storage.Config{URL: redis.URL})
	events, _, err := access.NewAudit(store).List(t.Context(), access.AuditFilter{Tenant: platformtest.Tenant, Action: "secret.read"})
	if err != nil || len(events) < 4 {
		t.Errorf("audit of secret.read: got %d events and error %v, want at least 4", len(events), err)
	}
}

// checkStoreHolds fails if text stands in any value of the store.
func checkStoreHolds(t *testing.T, url, text string) {
	t.Helper()
	client := storagetest.Open(t, storage.Config{URL: url}).Client()
	keys := storagetest.Keys(t, client, "*")
	for _, key := range keys {
		if held := storagetest.Contents(t, client, key); strings.Contains(held, text) {
			t.Errorf("store key %s: got the secret in %.300s, want no secret", key, held)
		}
	}
	if len(keys) < 10 {
		t.Errorf("got %d keys, want more", len(keys))
	}
}
