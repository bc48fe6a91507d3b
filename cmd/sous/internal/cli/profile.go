package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// profileCommand returns sous profile and its commands, which edit the profile file of this
// user and call no server.
func (a commands) profileCommand() *cobra.Command {
	return command.Group("profile", "Servers and keys, saved under names",
		a.profileSetCommand(), a.profileListCommand(), a.profileUseCommand(), a.profileDeleteCommand())
}

// editProfiles loads the saved profiles, calls edit, and saves the result. If edit fails, the
// file stays as it is.
func editProfiles(edit func(*command.Profiles) error) error {
	path, err := command.ProfilesPath()
	if err != nil {
		return err
	}
	all, err := command.LoadProfiles(path)
	if err != nil {
		return err
	}
	if err := edit(&all); err != nil {
		return err
	}
	return all.Save(path)
}

// profileSetCommand returns sous profile set. It changes the fields whose flags are set, so a
// key can be replaced without repeating the URL; --url "" resets a field to its default.
func (a commands) profileSetCommand() *cobra.Command {
	var given command.Profile
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Save a profile, or change fields of an existing one; the first profile becomes the current one",
		Example: `  sous profile set staging --url https://sous.example.com --tenant t_acme01
  SOUS_KEY=… sous profile set staging --key-from-env`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&given.URL, "url", "", "server")
	flags.StringVar(&given.Key, "key", "", "API key; other users of this machine can read command lines, so prefer --key-from-env")
	flags.StringVar(&given.Tenant, "tenant", "", "tenant")
	flags.StringVar(&given.Namespace, "namespace", "", "namespace")
	fromEnv := flags.Bool("key-from-env", false, "read the key from SOUS_KEY, so that no command line shows it")
	cmd.MarkFlagsMutuallyExclusive("key", "key-from-env")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := api.ValidateName("profile", args[0]); err != nil {
			return err
		}
		if err := given.Validate(); err != nil {
			return err
		}
		if *fromEnv {
			key, err := command.KeyFromEnv()
			if err != nil {
				return err
			}
			given.Key = key
		}
		err := editProfiles(func(all *command.Profiles) error {
			all.Profiles[args[0]] = changed(all.Profiles[args[0]], given, flags)
			all.Current = cmp.Or(all.Current, args[0])
			return nil
		})
		if err != nil {
			return err
		}
		a.Note("profile %s saved", args[0])
		return nil
	}
	return cmd
}

// changed returns p with the fields of given whose flags were set. --key and --key-from-env,
// which exclude each other, set the same field.
func changed(p, given command.Profile, flags *pflag.FlagSet) command.Profile {
	for name, field := range map[string]struct {
		to   *string
		from string
	}{
		"url": {&p.URL, given.URL}, "key": {&p.Key, given.Key},
		"tenant": {&p.Tenant, given.Tenant}, "namespace": {&p.Namespace, given.Namespace},
		"key-from-env": {&p.Key, given.Key},
	} {
		if flags.Changed(name) {
			*field.to = field.from
		}
	}
	return p
}

// listedProfile is a profile as it is printed: without its key.
type listedProfile struct {
	Name      string `json:"name"`
	Current   bool   `json:"current"`
	URL       string `json:"url"`
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	HasKey    bool   `json:"has_key"`
}

func (a commands) profileListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the saved profiles, without their keys", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := command.ProfilesPath()
			if err != nil {
				return err
			}
			all, err := command.LoadProfiles(path)
			if err != nil {
				return err
			}
			items := make([]listedProfile, 0, len(all.Profiles))
			for _, name := range slices.Sorted(maps.Keys(all.Profiles)) {
				p := all.Profiles[name]
				items = append(items, listedProfile{
					Name: name, Current: name == all.Current, URL: cmp.Or(p.URL, command.DefaultURL),
					Tenant: cmp.Or(p.Tenant, command.DefaultTenant), Namespace: cmp.Or(p.Namespace, command.DefaultNamespace), HasKey: p.Key != "",
				})
			}
			return command.PrintList(a.App, items, []string{"IN USE", "NAME", "URL", "TENANT", "NAMESPACE", "KEY"}, func(p listedProfile) []string {
				return []string{command.Mark(p.Current, "*"), p.Name, p.URL, p.Tenant, p.Namespace, command.Mark(p.HasKey, "saved")}
			})
		},
	}
}

// profileUseCommand returns sous profile use. Pick refuses a name without a profile.
func (a commands) profileUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a profile the current one", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := editProfiles(func(all *command.Profiles) error {
				_, err := all.Pick(args[0])
				all.Current = args[0]
				return err
			})
			if err != nil {
				return err
			}
			a.Note("profile %s is in use", args[0])
			return nil
		},
	}
}

// profileDeleteCommand returns sous profile delete. After the current profile is deleted no
// profile is in use: another one could name a production server.
func (a commands) profileDeleteCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a profile and its key", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.Confirm(yes, fmt.Sprintf("Delete profile %s?", args[0])); err != nil {
				return err
			}
			err := editProfiles(func(all *command.Profiles) error {
				if _, err := all.Pick(args[0]); err != nil {
					return err
				}
				delete(all.Profiles, args[0])
				if all.Current == args[0] {
					all.Current = ""
				}
				return nil
			})
			if err != nil {
				return err
			}
			a.Note("profile %s deleted", args[0])
			return nil
		},
	}
	command.RegisterYes(cmd, &yes)
	return cmd
}
