package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// defaultConfigFile is the configuration file if no other is named. It need not exist.
const defaultConfigFile = "sous.yaml"

// envPrefix starts the names of all environment variables of sous.
const envPrefix = "SOUS_"

// loadSettings returns the validated settings of a server. Each comes from its flag, else
// from its SOUS_* variable, else from the YAML file, else from the flag's default. A key of
// the file that is no flag is refused. Unknown variables are ignored, because other
// programs set some: Kubernetes does for a service named sous.
//
// For example, with "drain-timeout: 60s" in the file, SOUS_DRAIN_TIMEOUT=20s and the flag
// --drain-timeout 10s, the value is 10 s. Without the flag it is 20 s, without both 60 s.
func loadSettings(flags *pflag.FlagSet) (settings, error) {
	k := koanf.New(".")
	if err := loadFile(k, flags); err != nil {
		return settings{}, err
	}
	if err := k.Load(env.Provider(".", env.Opt{Prefix: envPrefix, TransformFunc: func(name, value string) (string, any) {
		// SOUS_DRAIN_TIMEOUT is drain-timeout.
		key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
		if value == "" || flags.Lookup(key) == nil {
			return "", nil // koanf ignores an empty key
		}
		return key, value
	}}), nil); err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	// The provider sets a flag's default only where no other source has a value.
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	var s settings
	if err := k.Unmarshal("", &s); err != nil {
		// The decoder's error has a headline, and a line for each setting.
		_, each, _ := strings.Cut(err.Error(), "\n\n")
		return settings{}, fmt.Errorf("settings: %s", strings.ReplaceAll(cmp.Or(each, err.Error()), "\n", "; "))
	}
	s.Roles = splitList(s.Roles)
	s.EgressAllow = splitList(s.EgressAllow)
	s.Network.TrustedProxies = splitList(s.Network.TrustedProxies)
	s.Network.OwnDomains = splitList(s.Network.OwnDomains)
	if err := s.resolveStore(flags); err != nil {
		return s, err
	}
	return s, s.validate()
}

// splitList splits the items of list at commas: a variable or a file may hold a list as
// one text, "a, b".
func splitList(list []string) []string {
	var out []string
	for _, text := range list {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			if item != "" {
				out = append(out, item)
			}
		}
	}
	return out
}

// ConfigFile returns the path of the configuration file: the one of the flag, else that
// of SOUS_CONFIG. If neither names a file, it returns the default file, which need not
// exist, and false.
func ConfigFile(flag string) (path string, named bool) {
	path = cmp.Or(flag, os.Getenv(envPrefix+"CONFIG"))
	return cmp.Or(path, defaultConfigFile), path != ""
}

// loadFile reads the configuration file into k. Only the default file may be missing: a file
// that the user named must exist. A file cannot name another one: the key config is refused.
func loadFile(k *koanf.Koanf, flags *pflag.FlagSet) error {
	flag, err := flags.GetString("config")
	if err != nil {
		return err
	}
	path, named := ConfigFile(flag)
	err = k.Load(file.Provider(path), yaml.Parser())
	if !named && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("settings: %s: %w", path, err)
	}
	for _, key := range k.Keys() {
		if key == "config" || flags.Lookup(key) == nil {
			return fmt.Errorf("settings: %s: unknown key %q; the keys are the names of the flags", path, key)
		}
	}
	return nil
}
