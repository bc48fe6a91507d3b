package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/nearest"
)

// Profile is a server and a tenant and namespace on it, saved under a name. An empty field
// means the default of target.go.
type Profile struct {
	URL       string `json:"url,omitempty"`
	Key       string `json:"key,omitempty"` // an API key in plain text; see Save
	Tenant    string `json:"tenant,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// Validate refuses a URL, tenant or namespace that cannot be one.
func (p Profile) Validate() error {
	if p.URL != "" {
		if _, err := client.New(p.URL, client.Config{}); err != nil {
			return err
		}
	}
	if p.Tenant != "" {
		if err := api.ValidateTenant(p.Tenant); err != nil {
			return err
		}
	}
	if p.Namespace != "" {
		return api.ValidateName("namespace", p.Namespace)
	}
	return nil
}

// Profiles is the content of the profile file, which sous profile writes:
//
//	{"current": "staging", "profiles": {"staging": {"url": "https://sous.example.com"}}}
//
// Current is the name of the profile that commands use when none is named.
type Profiles struct {
	Current  string             `json:"current,omitempty"`
	Profiles map[string]Profile `json:"profiles"`
}

// ProfilesPath returns the path of the user's profile file, sous/profiles.json in
// $XDG_CONFIG_HOME or ~/.config. It fails if neither XDG_CONFIG_HOME nor HOME is set.
func ProfilesPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("profiles: %w", err)
	}
	return filepath.Join(dir, "sous", "profiles.json"), nil
}

// LoadProfiles reads the file at path. If there is no file, it returns no profiles.
func LoadProfiles(path string) (Profiles, error) {
	empty := Profiles{Profiles: map[string]Profile{}}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("profiles: %w", err)
	}
	out := empty
	if err := json.Unmarshal(raw, &out); err != nil {
		return empty, fmt.Errorf("profiles: %s: %w", path, err)
	}
	return out, nil
}

// Save replaces the file at path in one step, with mode 0600: it holds API keys. A process
// that reads or dies meanwhile finds the old file or the new one. Of two processes that save
// at the same time, the later one wins, and the change of the other is lost.
func (p Profiles) Save(path string) (err error) {
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	tmp, err := os.CreateTemp(dir, "profiles-*") // made with mode 0600
	if err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, writeErr := tmp.Write(append(raw, '\n'))
	if err := errors.Join(writeErr, tmp.Close()); err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("profiles: %w", err)
	}
	return nil
}

// Pick returns the profile called name; for "" the current one, or an empty profile if
// there is none. It fails if there is no profile of that name.
func (p Profiles) Pick(name string) (Profile, error) {
	if name == "" {
		name = p.Current
	}
	if name == "" {
		return Profile{}, nil
	}
	if found, ok := p.Profiles[name]; ok {
		return found, nil
	}
	if meant := nearest.Name(name, slices.Sorted(maps.Keys(p.Profiles))); meant != "" {
		return Profile{}, fmt.Errorf("no profile %q; did you mean %q?", name, meant)
	}
	return Profile{}, fmt.Errorf("no profile %q; see sous profile list", name)
}

// KeyFromEnv returns the value of SOUS_KEY. It fails if the variable is not set.
func KeyFromEnv() (string, error) {
	key := os.Getenv("SOUS_KEY")
	if key == "" {
		return "", errors.New("SOUS_KEY is not set")
	}
	return key, nil
}
