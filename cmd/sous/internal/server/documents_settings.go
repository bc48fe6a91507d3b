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

// documentSettings are the settings of the document store: quotas, rate and token.
type documentSettings struct {
	NamespaceRecords int64   `koanf:"storage-namespace-records"`
	NamespaceBytes   int64   `koanf:"storage-namespace-bytes"`
	TenantRecords    int64   `koanf:"storage-tenant-records"`
	TenantBytes      int64   `koanf:"storage-tenant-bytes"`
	Rate             float64 `koanf:"storage-rate"`
	TokenFile        string  `koanf:"storage-token-file"`
}

// registerDocuments adds the settings of the document store to flags.
func registerDocuments(flags *pflag.FlagSet) {
	flags.Int64("storage-namespace-records", api.DefaultNamespaceRecords, "most documents of a namespace of the document storage (0: any number)")
	flags.Int64("storage-namespace-bytes", api.DefaultNamespaceBytes, "most bytes of their keys, values and metadata (0: any)")
	flags.Int64("storage-tenant-records", api.DefaultTenantRecords, "most documents of a tenant (0: any number)")
	flags.Int64("storage-tenant-bytes", api.DefaultTenantBytes, "most bytes of their keys, values and metadata (0: any)")
	flags.Float64("storage-rate", 0, "operations of the document storage that a tenant may do each second on this replica (0: any)")
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

// token returns the token that runners send, "" if there is none.
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

// readToken returns the only line of the file at path.
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
