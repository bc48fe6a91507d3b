package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/codesous/sous/storage"
	"github.com/codesous/sous/storage/secrets"
)

// devSecretsKey is the name of the key file that dev creates in its data folder.
const devSecretsKey = "secrets.key"

// registerSecrets adds the settings of secrets to flags.
func registerSecrets(flags *pflag.FlagSet) {
	flags.String("secrets-key-file", "", "file of the keys that seal secrets (sous secret keygen), mode 0600; read again when it changes; without it, secrets can be neither written nor read")
}

// openSecrets opens the secrets in store, with the key file if the settings name one.
func (s *settings) openSecrets(store *storage.Store, logger *zap.Logger) (*secrets.Secrets, error) {
	if s.SecretsKey == "" {
		return secrets.New(store, nil), nil
	}
	keys, err := secrets.OpenKeyFile(s.SecretsKey, logger)
	if err != nil {
		return nil, fmt.Errorf("secrets-key-file: %w", err)
	}
	return secrets.New(store, keys), nil
}

// makeSecretsKey creates a key file in the data folder unless one is named or exists, and
// sets SecretsKey to it. It never replaces a file: the secrets in the store need their key.
func (s *settings) makeSecretsKey() error {
	if s.SecretsKey != "" {
		return nil
	}
	s.SecretsKey = filepath.Join(s.DataDir, devSecretsKey)
	if _, err := os.Lstat(s.SecretsKey); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(s.DataDir, 0o700); err != nil {
		return fmt.Errorf("data-dir: %w", err)
	}
	_, err := secrets.Keygen(s.SecretsKey, time.Now())
	return err
}
