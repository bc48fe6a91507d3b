package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeFile writes a file of that mode and returns its path.
func writeFile(t *testing.T, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatalf("Chmod: %v", err)
	}
	return path
}

// TestStoreFile: the value of store can come from a file or from a credential, in this order,
// and a file that other users can read is refused.
func TestStoreFile(t *testing.T) {
	const url = "redis://sous:secret@127.0.0.1:6666"
	file := writeFile(t, "store", url+"\n", 0o600)
	credential := writeFile(t, credentialStore, "redis://127.0.0.2:6666", 0o400)
	for name, tc := range map[string]struct {
		args        []string
		environment map[string]string
		want        string
		err         string
	}{
		"none":                    {},
		"flag":                    {args: []string{"--store-file", file}, want: url},
		"variable":                {environment: map[string]string{"SOUS_STORE_FILE": file}, want: url},
		"credential":              {environment: map[string]string{credentialsVariable: filepath.Dir(credential)}, want: "redis://127.0.0.2:6666"},
		"file before credential":  {args: []string{"--store-file", file}, environment: map[string]string{credentialsVariable: filepath.Dir(credential)}, want: url},
		"store before credential": {environment: map[string]string{"SOUS_STORE": "redis://127.0.0.3:1", credentialsVariable: filepath.Dir(credential)}, want: "redis://127.0.0.3:1"},
		"no such credential":      {environment: map[string]string{credentialsVariable: t.TempDir()}},
		"both":                    {args: []string{"--store", url, "--store-file", file}, err: "both set"},
		"missing":                 {args: []string{"--store-file", file + "x"}, err: "no such file"},
		"readable by all":         {args: []string{"--store-file", writeFile(t, "open", url, 0o604)}, err: "chmod 600"},
		"empty":                   {args: []string{"--store-file", writeFile(t, "empty", " \n", 0o600)}, err: "one line"},
		"two lines":               {args: []string{"--store-file", writeFile(t, "two", url+"\n"+url, 0o600)}, err: "one line"},
		"too large":               {args: []string{"--store-file", writeFile(t, "large", strings.Repeat("x", maxStoreFile+1), 0o600)}, err: "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range tc.environment {
				t.Setenv(variable, value)
			}
			s, err := loadSettings(serverFlags(t, tc.args...))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("loadSettings(%q) = error %v, want one with %q and without the password", tc.args, err, tc.err)
				}
				return
			}
			if err != nil || s.Store != tc.want {
				t.Errorf("loadSettings(%q) = store %q, error %v, want %q", tc.args, s.Store, err, tc.want)
			}
		})
	}
}

// TestSecretsKeyOfACredential: the unit of systemd can pass the key file, too.
func TestSecretsKeyOfACredential(t *testing.T) {
	path := writeFile(t, credentialSecrets, "", 0o400)
	t.Setenv(credentialsVariable, filepath.Dir(path))
	s, err := loadSettings(serverFlags(t))
	if err != nil || s.SecretsKey != path {
		t.Errorf("loadSettings() = secrets-key-file %q, error %v, want %q", s.SecretsKey, err, path)
	}
	s, err = loadSettings(serverFlags(t, "--secrets-key-file", "other"))
	if err != nil || s.SecretsKey != "other" {
		t.Errorf("loadSettings(--secrets-key-file other) = %q, error %v, want other", s.SecretsKey, err)
	}
}

// TestPasswordInArguments is noticed only there: a variable or a file is private.
func TestPasswordInArguments(t *testing.T) {
	for store, want := range map[string]bool{
		"redis://127.0.0.1:6666":                false,
		"redis://sous@127.0.0.1:6666":           false,
		"redis://:secret@127.0.0.1:6666":        true,
		"rediss://sous:secret@127.0.0.1:6666/1": true,
		"redis-cluster://sous:secret@a:1,b:2":   true,
		"redis-cluster://a:1,b:2":               false,
	} {
		s, err := loadSettings(serverFlags(t, "--store", store))
		if err != nil || s.StoreInArgs != want || (WarnOfPassword(store) != "") != want {
			t.Errorf("loadSettings(--store %s): got a password in the arguments %v, error %v, want %v", store, s.StoreInArgs, err, want)
		}
	}
	t.Setenv("SOUS_STORE", "redis://:secret@127.0.0.1:6666")
	if s, err := loadSettings(serverFlags(t)); err != nil || s.StoreInArgs {
		t.Errorf("loadSettings with SOUS_STORE: got a password in the arguments %v, error %v, want none", s.StoreInArgs, err)
	}
}
