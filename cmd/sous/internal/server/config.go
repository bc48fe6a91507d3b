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

// defaultConfigFile is read where it exists and no other is named.
const defaultConfigFile = "sous.yaml"

const envPrefix = "SOUS_"

// loadSettings reads a server's settings from its flags, else from SOUS_*
// variables, else from a YAML file, else from the flags' defaults, and validates
// them. A key of the file that is no flag of the command is refused; variables
// are not, because others set some too (Kubernetes for a service named sous).
func loadSettings(flags *pflag.FlagSet) (settings, error) {
	k := koanf.New(".")
	if err := loadFile(k, flags); err != nil {
		return settings{}, err
	}
	if err := k.Load(env.Provider(".", env.Opt{Prefix: envPrefix, TransformFunc: func(name, value string) (string, any) {
		key := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, envPrefix)), "_", "-")
		if value == "" || flags.Lookup(key) == nil {
			return "", nil // koanf takes this for "not there"
		}
		return key, value
	}}), nil); err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	// The provider puts a flag's default only where nothing else gave a value.
	if err := k.Load(posflag.Provider(flags, ".", k), nil); err != nil {
		return settings{}, fmt.Errorf("settings: %w", err)
	}
	var s settings
	if err := k.Unmarshal("", &s); err != nil {
		// The decoder has a headline of its own, and a line for each setting.
		_, each, _ := strings.Cut(err.Error(), "\n\n")
		return settings{}, fmt.Errorf("settings: %s", strings.ReplaceAll(cmp.Or(each, err.Error()), "\n", "; "))
	}
	s.Roles = splitList(s.Roles)
	s.EgressAllow = splitList(s.EgressAllow)
	return s, s.validate()
}

// splitList takes a list apart that a variable or a file gave as one text, "a, b".
func splitList(list []string) []string {
	var out []string
	for _, text := range list {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
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

// StoreURL returns the store's URL: that of the flag, else that of SOUS_STORE.
func StoreURL(flag string) string { return cmp.Or(flag, os.Getenv(envPrefix+"STORE")) }

// loadFile reads the configuration file, if there is one.
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
