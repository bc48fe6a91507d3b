package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/controlplane"
	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/documents"
)

// documentTokenVariable holds the runners' token if no file does. The contract of the
// document storage defines its name.
const documentTokenVariable = "RUNNER_STORAGE_API_TOKEN"

// maxTokenFile is the largest token file, in bytes.
const maxTokenFile = 4 << 10

// documentSettings are the settings of the document store: quotas, rate and token. A quota or
// rate of 0 is no limit. Quotas should be the same on all replicas, because the replica that
// writes a document applies its own.
type documentSettings struct {
	NamespaceRecords int64   `koanf:"storage-namespace-records"`
	NamespaceBytes   int64   `koanf:"storage-namespace-bytes"`
	TenantRecords    int64   `koanf:"storage-tenant-records"`
	TenantBytes      int64   `koanf:"storage-tenant-bytes"`
	Rate             float64 `koanf:"storage-rate"` // operations of a tenant a second, on this replica
	TokenFile        string  `koanf:"storage-token-file"`
}

// registerDocuments adds the settings of the document store to flags.
func registerDocuments(flags *pflag.FlagSet) {
	flags.Int64("storage-namespace-records", api.DefaultNamespaceRecords, "largest number of documents in a namespace of the document storage (0: no limit)")
	flags.Int64("storage-namespace-bytes", api.DefaultNamespaceBytes, "largest size in bytes of the keys, values and metadata in a namespace of the document storage (0: no limit)")
	flags.Int64("storage-tenant-records", api.DefaultTenantRecords, "largest number of documents of a tenant (0: no limit)")
	flags.Int64("storage-tenant-bytes", api.DefaultTenantBytes, "largest size in bytes of the keys, values and metadata of a tenant's documents (0: no limit)")
	flags.Float64("storage-rate", 0, "operations of the document storage that a tenant may perform each second on this replica (0: no limit)")
	flags.String("storage-token-file", "", "file with the token that runners send to the internal storage endpoint ("+documentTokenVariable+"); without a token there is no such endpoint")
}

// validate refuses negative limits and a token that is too short.
func (s *documentSettings) validate() error {
	if min(s.NamespaceRecords, s.NamespaceBytes, s.TenantRecords, s.TenantBytes) < 0 {
		return errors.New("storage quotas cannot be negative")
	}
	if !(s.Rate >= 0) || math.IsInf(s.Rate, 0) {
		return errors.New("storage-rate: want 0 or more")
	}
	_, err := s.token()
	return err
}

// token returns the token that runners send, "" if there is none: that of the file, else that
// of the variable. It fails if the file cannot be read or the token is too short, so that a
// mistake does not silently remove the endpoint.
func (s *documentSettings) token() (string, error) {
	token, from := os.Getenv(documentTokenVariable), documentTokenVariable
	if s.TokenFile != "" {
		from = "storage-token-file"
		var err error
		token, err = readToken(s.TokenFile)
		if err != nil {
			return "", fmt.Errorf("%s: %w", from, err)
		}
	}
	if token != "" && len(token) < controlplane.MinStorageToken {
		return "", fmt.Errorf("%s: a token has at least %d bytes", from, controlplane.MinStorageToken)
	}
	return token, nil
}

// readToken returns the only word of the file at path. White space around it is removed; a
// file that is empty, larger than maxTokenFile or holds several words is refused.
func readToken(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := bytes.TrimSpace(raw)
	if len(raw) > maxTokenFile || len(token) == 0 || bytes.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one token", path)
	}
	return string(token), nil
}

// openDocuments opens the document store.
func (s *documentSettings) openDocuments(ctx context.Context, store *storage.Store, metrics prometheus.Registerer) (*documents.Service, error) {
	return documents.New(ctx, store, documents.Config{
		Quota: documents.Quota{
			NamespaceRecords: s.NamespaceRecords, NamespaceBytes: s.NamespaceBytes,
			TenantRecords: s.TenantRecords, TenantBytes: s.TenantBytes,
		},
		Rate: s.Rate, Metrics: metrics,
	})
}
