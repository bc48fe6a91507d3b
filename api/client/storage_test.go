package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

func TestStorageRequests(t *testing.T) {
	t.Parallel()
	const install, bearer, contentType = "/v1/tenants/t_default/installs/crm", "Bearer k1", "application/json"
	const space = install + "/storage/namespaces/settings"
	crm := func(c *client.Client) *client.Install { return c.Tenant("t_default").Install("crm") }
	three := int64(3)
	send := func(method, uri, body string) seen {
		s := seen{Method: method, URI: uri, Body: body, Auth: bearer}
		if body != "" {
			s.ContentType = contentType
		}
		return s
	}
	for name, tt := range map[string]struct {
		call func(ctx context.Context, i *client.Install) error
		want seen
	}{
		"register": {func(ctx context.Context, i *client.Install) error {
			_, err := i.Register(ctx, api.Install{Description: "d", Functions: []string{"payments/*"}})
			return err
		}, send("PUT", install, `{"description":"d","functions":["payments/*"]}`)},
		"get install":    {func(ctx context.Context, i *client.Install) error { _, err := i.Get(ctx); return err }, send("GET", install, "")},
		"delete install": {func(ctx context.Context, i *client.Install) error { return i.Delete(ctx) }, send("DELETE", install, "")},
		"put": {func(ctx context.Context, i *client.Install) error {
			d, err := i.PutDocument(ctx, api.DocumentPut{Namespace: "settings", DocumentItem: api.DocumentItem{Key: "a", Value: json.RawMessage(`1`), IfRevision: &three}})
			if err == nil && d.Revision != 7 {
				err = fmt.Errorf("%+v", d)
			}
			return err
		}, send("POST", install+"/storage/put", `{"namespace":"settings","key":"a","value":1,"ifRevision":3}`)},
		"get": {func(ctx context.Context, i *client.Install) error {
			_, err := i.Document(ctx, api.DocumentGet{Namespace: "settings", Key: "a b/ü"})
			return err
		}, send("GET", install+"/storage/get?key=a+b%2F%C3%BC&namespace=settings", "")},
		"list": {func(ctx context.Context, i *client.Install) error {
			_, err := i.Documents(ctx, api.DocumentList{Namespace: "settings", KeyPrefix: "a", IncludeValues: true})
			return err
		}, send("POST", install+"/storage/list", `{"namespace":"settings","keyPrefix":"a","includeValues":true}`)},
		"delete": {func(ctx context.Context, i *client.Install) error {
			return i.DeleteDocument(ctx, api.DocumentDelete{Namespace: "settings", Key: "a"})
		}, send("POST", install+"/storage/delete", `{"namespace":"settings","key":"a"}`)},
		"bulk": {func(ctx context.Context, i *client.Install) error {
			_, err := i.BulkPut(ctx, api.DocumentBulkPut{Namespace: "settings", Items: []api.DocumentItem{{Key: "a", Value: json.RawMessage(`1`)}}})
			return err
		}, send("POST", install+"/storage/bulkPut", `{"namespace":"settings","items":[{"key":"a","value":1}]}`)},
		"transact": {func(ctx context.Context, i *client.Install) error {
			_, err := i.Transact(ctx, api.DocumentTransact{Namespace: "settings", Operations: []api.DocumentStep{{Op: "put", DocumentItem: api.DocumentItem{Key: "a", Value: json.RawMessage(`1`)}}}})
			return err
		}, send("POST", install+"/storage/transact", `{"namespace":"settings","operations":[{"op":"put","key":"a","value":1}]}`)},
		"namespaces":       {func(ctx context.Context, i *client.Install) error { _, err := i.Namespaces(ctx); return err }, send("GET", install+"/storage/namespaces", "")},
		"delete namespace": {func(ctx context.Context, i *client.Install) error { return i.DeleteNamespace(ctx, "settings") }, send("DELETE", space, "")},
		"schema":           {func(ctx context.Context, i *client.Install) error { _, err := i.Schema(ctx, "settings"); return err }, send("GET", space+"/schema", "")},
		"set schema": {func(ctx context.Context, i *client.Install) error {
			return i.SetSchema(ctx, "settings", json.RawMessage(`{"type":"object"}`))
		}, send("PUT", space+"/schema", `{"type":"object"}`)},
		"delete schema": {func(ctx context.Context, i *client.Install) error { return i.DeleteSchema(ctx, "settings") }, send("DELETE", space+"/schema", "")},
		"changes": {func(ctx context.Context, i *client.Install) error {
			_, err := i.Changes(ctx, "settings", 5, 10)
			return err
		}, send("GET", space+"/changes?limit=10&since=5", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, all := serve(t, 200, `{"revision":7}`)
			if err := tt.call(t.Context(), crm(c)); err != nil {
				t.Fatalf("call: %v", err)
			}
			if diff := cmp.Diff([]seen{tt.want}, *all); diff != "" {
				t.Errorf("difference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailuresOfTheStorageAreWhole(t *testing.T) {
	t.Parallel()
	c, _ := serve(t, 409, `{"code":"BULK_PARTIAL_FAILURE","detail":"no","items":[{"index":3,"code":"QUOTA_EXCEEDED"}],"quota":{"scope":"tenant","unit":"records","limit":5,"used":5}}`)
	_, err := c.Tenant("t_default").Install("crm").BulkPut(t.Context(), api.DocumentBulkPut{})
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != api.CodeBulkPartialFailure || len(refused.Items) != 1 || refused.Items[0].Index != 3 || refused.Quota == nil || refused.Quota.Used != 5 {
		t.Errorf("BulkPut: got error %+v, want CodeBulkPartialFailure with item 3 and the tenant's quota", err)
	}
}

// A feed goes on where it broke, also behind the end of a server.
func TestFollowChangesGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	asked := make(chan string, 10)
	c := start(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RawQuery + " " + r.Header.Get("Last-Event-ID")
		w.Header().Set("Content-Type", "text/event-stream")
		switch connections.Add(1) {
		case 1:
			fmt.Fprint(w, ": following\n\nid: 1\nevent: reset\ndata: {\"latest\":3}\n\nid: 2\nevent: put\ndata: {\"id\":2,\"op\":\"put\",\"key\":\"a\"}\n\nevent: end\ndata: {}\n\n")
		default:
			fmt.Fprint(w, "id: 3\nevent: delete\ndata: {\"id\":3,\"op\":\"delete\",\"key\":\"a\"}\n\n")
		}
	})
	var got []string
	enough := errors.New("enough")
	err := c.Tenant("t_default").Install("crm").FollowChanges(t.Context(), "settings", 0, func(change api.DocumentChange) error {
		got = append(got, fmt.Sprintf("%d %s %s", change.ID, change.Op, change.Key))
		if len(got) == 3 {
			return enough
		}
		return nil
	}, func() error { got = append(got, "reset"); return nil })
	if !errors.Is(err, enough) {
		t.Errorf("FollowChanges: got error %v, want %v", err, enough)
	}
	if diff := cmp.Diff([]string{"reset", "2 put a", "3 delete a"}, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
	if first, second := <-asked, <-asked; first != "follow=true&since=0 " || second != "follow=true&since=0 2" {
		t.Errorf("got requests %q and %q, want since=0, and then the same with Last-Event-ID 2", first, second)
	}
}
