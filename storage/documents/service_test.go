package documents_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
	"github.com/codesous/sous/storage/documents/documentstest"
	"github.com/codesous/sous/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// direct is the service itself as a face.
type direct struct {
	service         *documents.Service
	tenant, install string
}

func (d direct) Do(t *testing.T, operation, body, ifRevision string) (int, []byte) {
	t.Helper()
	request := json.RawMessage(body)
	if ifRevision != "" {
		var get api.DocumentGet
		if err := json.Unmarshal(request, &get); err != nil {
			t.Fatalf("json.Unmarshal: %v", err)
		}
		n, err := strconv.ParseInt(ifRevision, 10, 64)
		if err != nil {
			t.Fatalf("strconv.ParseInt: %v", err)
		}
		get.IfRevision = &n
		request, err = json.Marshal(get)
		if err != nil {
			t.Fatalf("json.Marshal: %v", err)
		}
	}
	out, err := d.service.Do(t.Context(), d.tenant, d.install, operation, request)
	status := http.StatusOK
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		status = documentstest.StatusOf(refused.Code)
		out = map[string]any{"code": refused.Code, "items": refused.Items, "quota": refused.Quota, "errors": refused.Fields}
	case err != nil:
		t.Fatalf("got error %v, want an *api.Error", err)
	case out == nil:
		return http.StatusNoContent, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatalf("json.Marshal: %v", err)
	}
	return status, raw
}

func TestServiceKeepsToTheContract(t *testing.T) {
	t.Parallel()
	server := storagetest.Redis(t)
	documentstest.Run(t, func(t *testing.T, cfg documents.Config) documentstest.Face {
		store := storagetest.Open(t, storage.Config{URL: server.URL, Clock: cfg.Clock})
		service, err := documents.New(t.Context(), store, cfg)
		if err != nil {
			t.Fatalf("documents.New: %v", err)
		}
		return direct{service, storagetest.Tenant(t), "crm"}
	})
}
