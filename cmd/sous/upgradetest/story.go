package upgradetest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"time"
)

// ordersCode uses all that a function may keep: keys and values, documents and a secret.
const ordersCode = `export default async function (event) {
  if (event.fail) {
    cs.log.error("the order is lost", { order: event.order });
    throw new TypeError("no such order");
  }
  const seen = (await cs.kv.get("orders:seen")) ?? 0;
  await cs.kv.set("orders:seen", seen + 1);
  await cs.storage.put({ namespace: "orders", key: "last", value: { order: event.order ?? null } });
  cs.log.info("order", { order: event.order });
  return { seen: seen + 1, secret: (await cs.secrets.get("STRIPE_KEY")).length };
}
`

const ordersManifest = `{
  "schema": "cs.function.script.v1", "runtime": "cs-js", "entry": "function.js", "handler": "default",
  "capabilities": {
    "kv": { "prefixes": ["orders:"], "ops": ["get", "set", "del"] },
    "storage": { "namespaces": ["orders"], "ops": ["*"] },
    "secrets": ["STRIPE_KEY"]
  }
}`

const pageCode = `export default (event) => ({ statusCode: 201, headers: { "x-page": "1" }, body: JSON.stringify(event.path) });
`

// played is what a story made, for the requests that follow it.
type played struct {
	Admin   string            `json:"admin"`  // API keys
	Worker  string            `json:"worker"` // of role worker
	Jobs    map[string]string `json:"jobs"`   // ids, by the state of the job
	Batch   string            `json:"batch"`  // an open batch
	Runs    map[string]string `json:"runs"`   // ids of activations
	Answers map[string]object `json:"answers"`
}

// play makes records of every kind through the API.
func play(p *player) *played {
	p.t.Helper()
	made := &played{Admin: p.key, Jobs: map[string]string{}, Runs: map[string]string{}, Answers: map[string]object{}}
	made.Worker = p.post(tenantPath+"/keys", object{"name": "mailer", "roles": []string{"worker"}, "namespace": "shop"})["key"].(string)
	p.put(shop+"/secrets/STRIPE_KEY", object{"value": "sk_test_123"})
	playFunctions(p, made)
	playJobs(p, made)
	playTasks(p)
	playDocuments(p)
	p.post(shop+"/schedules", object{"name": "report", "cron": "30 6 1 1 *", "timezone": "Europe/Berlin", "ref": object{"function": "orders"}, "payload": object{"order": 9}})
	p.post(shop+"/schedules", object{"name": "checks", "every_seconds": 86400, "queue": object{"name": "checks", "priority": "high"}})
	p.post(shop+"/schedules/checks:run", nil)
	p.post(shop+"/cadence/workers", object{"name": "charges", "domain": "payments", "tasklist": "charges", "activity_map": object{"Charge": object{"function": "orders"}}, "enabled": false})
	return made
}

// publish publishes files as a version of a function and points alias at it.
func publish(p *player, function, alias string, config object, files map[string]string) {
	p.t.Helper()
	encoded := object{}
	for path, text := range files {
		encoded[path] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	draft := p.put(shop+"/functions/"+function+"/draft", object{"files": encoded})
	p.post(shop+"/functions/"+function+"/versions", object{"draft_id": draft["draft_id"], "config": config, "alias": alias})
}

func playFunctions(p *player, made *played) {
	p.t.Helper()
	p.post(shop+"/functions", object{"name": "orders", "description": "takes orders", "labels": object{"team": "shop"}})
	files := map[string]string{"function.js": ordersCode, "manifest.json": ordersManifest}
	publish(p, "orders", "prod", object{
		"timeout_ms": 5000, "env": object{"REGION": "eu"},
		"retry": object{"max_attempts": 3, "backoff": "fixed", "base_delay_ms": 3600000, "max_delay_ms": 3600000},
	}, files)
	files["notes.txt"] = "second"
	publish(p, "orders", "beta", object{"timeout_ms": 1000}, files)
	p.post(shop+"/functions", object{"name": "page"})
	publish(p, "page", "prod", object{"authz": object{"invoke_http_roles": []string{"*"}}}, map[string]string{"function.js": pageCode})
	p.post(shop+"/functions", object{"name": "gone"})
	p.do(http.MethodDelete, shop+"/functions/gone", nil)

	invoke := func(name string, body object, headers ...string) {
		body["ref"] = object{"alias": "prod"}
		made.Runs[name] = p.post(shop+"/functions/orders:invoke", body, headers...)["activation_id"].(string)
	}
	invoke("success", object{"event": object{"order": 1}})
	invoke("keyed", object{"event": object{"order": 2}}, "Idempotency-Key: order-2")
	invoke("failure", object{"event": object{"fail": true}})
	invoke("async", object{"event": object{"order": 3}, "mode": "async"})
	invoke("retrying", object{"event": object{"fail": true}, "mode": "async"})
	p.await(tenantPath+"/activations/"+made.Runs["async"], is("status", "success"))
	p.await(tenantPath+"/activations/"+made.Runs["retrying"], func(a object) bool {
		return a["status"] == "queued" && a["error"] != nil
	})
	p.send(http.MethodGet, "/v1/web/t_upgrade/shop/page/prod/items/7", nil)
}

// playJobs leaves a job in every state on the queue emails.
func playJobs(p *player, made *played) {
	p.t.Helper()
	add := func(name string, job object) {
		job["payload"] = object{"name": name}
		jobs := p.post(shop+"/queues/emails/jobs", job)["jobs"].([]any)
		made.Jobs[name] = jobs[0].(object)["id"].(string)
	}
	// fetch fetches the only job that is pending. Its lease is short, so that it has ended
	// when the next release starts.
	fetch := func(name string) object {
		p.t.Helper()
		jobs, _ := p.post(tenantPath+"/jobs:fetch", object{"namespace": "shop", "queues": []string{"emails"}, "worker_id": "w1", "lease_ms": 1000})["jobs"].([]any)
		if len(jobs) != 1 || jobs[0].(object)["id"] != made.Jobs[name] {
			p.t.Fatalf("fetch returned %v, want the job %s %s", jobs, name, made.Jobs[name])
		}
		return object{"id": made.Jobs[name], "lease_epoch": jobs[0].(object)["lease_epoch"]}
	}
	add("completed", object{"tags": object{"kind": "welcome"}})
	job := fetch("completed")
	p.post(tenantPath+"/jobs:heartbeat", object{"worker_id": "w1", "jobs": []any{object{
		"id": job["id"], "lease_epoch": job["lease_epoch"], "progress": object{"current": 1, "total": 3}, "checkpoint": object{"page": 7},
	}}})
	p.post(tenantPath+"/jobs:ack", object{"acks": []any{object{"id": job["id"], "lease_epoch": job["lease_epoch"], "result": object{"sent": true}}}})
	add("dead", object{"max_attempts": 2})
	job = fetch("dead")
	p.post(tenantPath+"/jobs:fail", object{"fails": []any{object{"id": job["id"], "lease_epoch": job["lease_epoch"], "error": "no such host", "fatal": true}}})
	add("retrying", object{"base_delay_ms": 3600000, "max_delay_ms": 3600000})
	job = fetch("retrying")
	p.post(tenantPath+"/jobs:fail", object{"fails": []any{object{"id": job["id"], "lease_epoch": job["lease_epoch"], "error": "no such host"}}})
	add("active", object{})
	fetch("active")
	batch := p.post(shop+"/batches", object{"callback": object{"queue": "reports", "payload": object{"day": "monday"}}})
	made.Batch = batch["id"].(string)
	add("batched", object{"batch_id": made.Batch})
	job = fetch("batched")
	p.post(tenantPath+"/jobs:ack", object{"acks": []any{object{"id": job["id"], "lease_epoch": job["lease_epoch"]}}})
	add("cancelled", object{})
	p.post(tenantPath+"/jobs/"+made.Jobs["cancelled"]+":cancel", nil)
	add("held", object{"hold": true})
	add("scheduled", object{"run_at_ms": time.Now().AddDate(9, 0, 0).UnixMilli()})
	add("waiting", object{"depends_on": []string{made.Jobs["held"]}})
	for _, priority := range []string{"low", "normal", "critical", "high"} {
		add(priority, object{"priority": priority, "unique_key": priority, "chain": object{"steps": []any{object{"queue": "archive", "payload": priority}}}})
	}
	p.do(http.MethodPatch, shop+"/queues/emails", object{"max_concurrency": 50, "rate_limit": 100, "rate_window_ms": 1000})
}

func playTasks(p *player) {
	p.t.Helper()
	for n, id := range []string{"new", "running", "done"} {
		task := tenantPath + "/tasks/import/" + id
		p.put(task, object{"namespace": "shop", "params_ref": "s3://" + id, "step_count": 3, "timeout_ms": 60000, "payload": object{"n": n}})
		if n > 0 {
			p.post(task+":claim", object{"worker": "w1"})
			p.post(task+":step", object{"worker": "w1", "step": 2})
		}
		if n > 1 {
			p.post(task+":complete", object{"worker": "w1", "result_ref": "s3://result"})
		}
	}
}

func playDocuments(p *player) {
	p.t.Helper()
	p.put(tenantPath+"/installs/crm", object{"description": "the CRM", "functions": []string{"shop/orders"}})
	documents := tenantPath + "/installs/crm/storage/namespaces/settings"
	p.put(documents+"/schema", object{"type": "object"})
	for n := range 3 {
		record := fmt.Sprintf("%s/records/key-%d", documents, n)
		p.put(record, object{"value": object{"n": n}, "metadata": object{"kind": "number"}})
		p.put(record, object{"value": object{"n": n, "again": true}, "metadata": object{"kind": "number"}})
	}
	p.do(http.MethodDelete, documents+"/records/key-2", nil)
}

// answers reads all that a story made, and returns the answers by path.
func answers(p *player, made *played) map[string]object {
	p.t.Helper()
	paths := []string{
		tenantPath, tenantPath + "/namespaces", tenantPath + "/keys", tenantPath + "/audit?limit=200",
		tenantPath + "/activations?namespace=shop&function=orders&limit=200", tenantPath + "/tasks?type=import", tenantPath + "/installs", tenantPath + "/installs/crm",
		shop + "/functions", shop + "/queues", shop + "/schedules", shop + "/cadence/workers", shop + "/secrets", shop + "/secrets/STRIPE_KEY",
		shop + "/batches/" + made.Batch, shop + "/schedules/report", shop + "/schedules/checks", shop + "/cadence/workers/charges",
	}
	for _, function := range []string{"orders", "page"} {
		at := shop + "/functions/" + function
		paths = append(paths, at, at+"/versions", at+"/versions/1", at+"/aliases", at+"/aliases/prod")
	}
	for _, id := range made.Runs {
		paths = append(paths, tenantPath+"/activations/"+id, tenantPath+"/activations/"+id+"/logs")
	}
	for _, id := range made.Jobs {
		paths = append(paths, tenantPath+"/jobs/"+id)
	}
	for _, state := range []string{"waiting", "scheduled", "held", "pending", "active", "retrying", "completed", "dead", "cancelled"} {
		paths = append(paths, shop+"/queues/emails/jobs?state="+state)
	}
	for _, id := range []string{"new", "running", "done"} {
		paths = append(paths, tenantPath+"/tasks/import/"+id)
	}
	crm, own := tenantPath+"/installs/crm/storage/namespaces", tenantPath+"/installs/fn.shop.orders/storage/namespaces"
	paths = append(paths, crm, crm+"/settings", crm+"/settings/records?includeValues=true&includeMetadata=true",
		crm+"/settings/records/key-1", crm+"/settings/schema", crm+"/settings/changes", own+"/orders/records/last")
	read := map[string]object{}
	for _, path := range paths {
		read[path] = p.answer(path)
	}
	_, bundle := p.send(http.MethodGet, shop+"/functions/orders/versions/2/bundle", nil)
	read["bundle"] = object{"base64": base64.StdEncoding.EncodeToString(bundle)}
	return read
}
