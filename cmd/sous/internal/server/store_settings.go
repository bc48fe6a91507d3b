package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
)

// credentialsVariable names the folder of the credentials that systemd passes to a service
// (LoadCredential=).
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// The credentials that a server looks for, by the setting that each stands for.
const (
	credentialStore   = "store"
	credentialSecrets = "secrets.key"
)

// maxStoreFile bounds the size of a store file, in bytes.
const maxStoreFile = 16 << 10

// registerStore adds the settings of the store to flags.
func registerStore(flags *pflag.FlagSet, help string) {
	flags.String("store", "", help)
	flags.String("store-file", "", "file with the value of store, for one with a password: other users of this machine can read command lines")
}

// resolveStore sets Store from the file of store-file, or from the credential store, where
// Store is not set itself, and SecretsKey from the credential secrets.key. It also
// records whether a flag, which other users can read, has a password.
func (s *settings) resolveStore(flags *pflag.FlagSet) error {
	if flag := flags.Lookup("store"); flag != nil && flag.Changed {
		s.StoreInArgs = hasPassword(s.Store)
	}
	var err error
	s.Store, err = storeURL(s.Store, s.StoreFile)
	if err != nil {
		return err
	}
	if s.SecretsKey == "" {
		s.SecretsKey, err = credential(credentialSecrets)
	}
	return err
}

// StoreURL returns the store's URL: that of the flag, else that of SOUS_STORE; else that in
// the file of SOUS_STORE_FILE, else that of the credential store, else "". It is for commands
// that open the store themselves; they do not read the configuration file.
func StoreURL(flag string) (string, error) {
	return storeURL(cmp.Or(flag, os.Getenv(envPrefix+"STORE")), os.Getenv(envPrefix+"STORE_FILE"))
}

// WarnOfPassword returns a warning for the value of a --store flag that holds a password, ""
// for any other.
func WarnOfPassword(flag string) string {
	if !hasPassword(flag) {
		return ""
	}
	return "--store has a password, which other users of this machine can read in the list of processes; put the value into a file of mode 0600 and name it with SOUS_STORE_FILE, or into SOUS_STORE"
}

// storeURL returns value, or the content of file, or of the credential store. value and file
// together are an error: one of them would be ignored.
func storeURL(value, file string) (string, error) {
	switch {
	case value != "" && file != "":
		return "", errors.New("store and store-file are both set: name the store in one of them")
	case value != "":
		return value, nil
	case file == "":
		var err error
		file, err = credential(credentialStore)
		if file == "" || err != nil {
			return "", err
		}
	}
	text, err := readStoreFile(file)
	if err != nil {
		return "", fmt.Errorf("store-file: %w", err)
	}
	return text, nil
}

// readStoreFile reads the one line of a store file. It refuses a file that users other than
// its owner and group can read.
func readStoreFile(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case info.Size() > maxStoreFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxStoreFile)
	case info.Mode().Perm()&0o007 != 0:
		return "", fmt.Errorf("%s can be read by all users of this machine (mode %04o): chmod 600", path, info.Mode().Perm())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || strings.ContainsAny(text, "\r\n") {
		return "", fmt.Errorf("%s must hold one line, the value of store", path)
	}
	return text, nil
}

// credential returns the path of a credential of this service, "" where it has none of that
// name.
func credential(name string) (string, error) {
	dir := os.Getenv(credentialsVariable)
	if dir == "" {
		return "", nil
	}
	path := filepath.Join(dir, name)
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return "", fmt.Errorf("credential %s: %w", name, err)
}

// hasPassword reports whether a store's URL has a password.
func hasPassword(store string) bool {
	u, err := url.Parse(store)
	if err != nil {
		return strings.Contains(store, "@") // several addresses are no URL
	}
	if u.User == nil {
		return false
	}
	_, has := u.User.Password()
	return has
}
