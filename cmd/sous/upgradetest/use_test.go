package upgradetest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// use goes on with what the story began. The server deletes nothing: it has no role
// scheduler.
func use(t *testing.T, p *player, made *played) {
	p.t, p.key = t, made.Admin
	useFunctions(p, made)
	p.post(tenantPath+"/jobs/"+made.Jobs["held"]+":approve", nil)
	p.post(tenantPath+"/jobs/"+made.Jobs["dead"]+":retry", nil)
	p.post(shop+"/batches/"+made.Batch+":seal", nil)
	task := tenantPath + "/tasks/import/new"
	p.post(task+":claim", object{"worker": "w2"})
	p.post(task+":complete", object{"worker": "w2", "result_ref": "s3://result"})
	p.await(task, is("state", "completed"))
	useDocuments(p)
}

// finish goes on with the rest, with all roles.
func finish(t *testing.T, p *player, made *played) {
	p.t, p.key = t, made.Worker
	finishJobs(p, made)
	p.key = made.Admin
	p.await(tenantPath+"/activations/"+made.Runs["retrying"], is("status", "cancelled"))
	run := p.post(shop+"/schedules/report:run", nil)
	p.await(tenantPath+"/activations/"+run["activation_id"].(string), is("status", "success"))
	p.do(http.MethodPatch, shop+"/schedules/checks", object{"enabled": false})
	p.do(http.MethodPatch, shop+"/cadence/workers/charges", object{"pollers": object{"activity": 2}})
}

func useFunctions(p *player, made *played) {
	p.t.Helper()
	answer := p.post(shop+"/functions/orders:invoke", object{"ref": object{"alias": "prod"}, "event": object{"order": 4}})
	result, _ := answer["result"].(object)
	// The story made three calls that succeeded.
	if answer["status"] != "success" || result["seen"] != 4.0 || result["secret"] != float64(len("sk_test_123")) {
		p.t.Errorf("fourth order: got %v, want success with seen 4 and the length of the secret", answer)
	}
	repeated := p.post(shop+"/functions/orders:invoke", object{"ref": object{"alias": "prod"}, "event": object{"order": 2}}, "Idempotency-Key: order-2")
	if repeated["activation_id"] != made.Runs["keyed"] {
		p.t.Errorf("a repeated call: got %v, want the activation %s", repeated, made.Runs["keyed"])
	}
	status, body := p.send(http.MethodGet, "/v1/web/t_upgrade/shop/page/prod/items/7", nil)
	if status != http.StatusCreated || string(body) != `"/items/7"` {
		p.t.Errorf(`page: got %d %s, want 201 "/items/7"`, status, body)
	}
	p.post(tenantPath+"/activations/"+made.Runs["retrying"]+":cancel", nil)
	publish(p, "orders", "prod", object{}, map[string]string{"function.js": pageCode, "manifest.json": ordersManifest})
	p.await(shop+"/functions/orders/aliases/prod", is("version", 3))
}

func finishJobs(p *player, made *played) {
	p.t.Helper()
	names := map[string]string{}
	for name, id := range made.Jobs {
		names[id] = name
	}
	// The jobs that wait now or do so soon. The lease of active ends without its worker.
	left := []string{"active", "critical", "dead", "held", "high", "low", "normal", "waiting"}
	var order []string
	for len(left) > 0 {
		jobs, _ := p.post(tenantPath+"/jobs:fetch", object{
			"namespace": "shop", "queues": []string{"emails"}, "worker_id": "w2", "wait_ms": 10000,
		})["jobs"].([]any)
		if len(jobs) == 0 {
			p.t.Fatalf("fetch after %v: got no job, want one of %v", order, left)
		}
		job := jobs[0].(object)
		name := names[job["id"].(string)]
		if payload, _ := job["payload"].(object); name == "" || payload["name"] != name {
			p.t.Errorf("job %q: got payload %v, want its own name in it", name, job["payload"])
		}
		p.post(tenantPath+"/jobs:ack", object{"acks": []any{object{"id": job["id"], "lease_epoch": job["lease_epoch"]}}})
		left, order = slices.DeleteFunc(left, func(n string) bool { return n == name }), append(order, name)
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "critical high ") {
		p.t.Errorf("got jobs in the order %s, want critical and high first", got)
	}
	for _, queue := range []string{"reports", "archive", "checks"} {
		jobs, _ := p.post(tenantPath+"/jobs:fetch", object{"namespace": "shop", "queues": []string{queue}, "worker_id": "w2", "wait_ms": 10000})["jobs"].([]any)
		if len(jobs) == 0 {
			p.t.Errorf("fetch from queue %s: got no job, want one", queue)
		}
	}
}

func useDocuments(p *player) {
	p.t.Helper()
	record := tenantPath + "/installs/crm/storage/namespaces/settings/records/key-1"
	if got := p.do(http.MethodPut, record, object{"value": object{"n": 5}}, `If-Match: "2"`); got["revision"] != 3.0 {
		p.t.Errorf("PUT of the third revision: got %v, want revision 3", got)
	}
	if status, text := p.send(http.MethodPut, record, object{"value": "no object"}); status/100 != 4 {
		p.t.Errorf("PUT of a value that the schema refuses: got %d %s, want a status of 4xx", status, text)
	}
}
