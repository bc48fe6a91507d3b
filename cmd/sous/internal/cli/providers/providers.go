// Package providers holds the commands about providers of models: sous provider set, list, get and
// delete.
package providers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/ai"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about providers of models.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.RemoteGroup("provider", "Providers of models that functions call by cs.ai, and routes over several",
		c.setCommand(), c.listCommand(), c.getCommand(), c.deleteCommand())}
}

// settingFlags are the flags of set.
type settingFlags struct {
	ai.ProviderSettings
	targets []string
	timeout time.Duration
	retries int
}

func (f *settingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kind, "kind", "", "openai (any endpoint in the form of OpenAI's API), anthropic, or route")
	flags.StringVar(&f.BaseURL, "base-url", "", "base URL, such as https://api.openai.com/v1")
	flags.StringVar(&f.Secret, "secret", "", "the secret with the key: NAMESPACE/NAME")
	flags.StringSliceVar(&f.Models, "model", nil, "the models that may be called, the first by default (default all)")
	flags.Int64Var(&f.RequestsPerMinute, "requests-per-minute", 0, "limit of requests, 0 for none")
	flags.Int64Var(&f.InputTokensPerMinute, "input-tokens-per-minute", 0, "limit of input tokens, 0 for none")
	flags.Int64Var(&f.OutputTokensPerMinute, "output-tokens-per-minute", 0, "limit of output tokens, 0 for none")
	flags.StringToStringVar(&f.Headers, "header", nil, "further headers: NAME=VALUE")
	flags.StringVar(&f.Log, "log", "", "what the log of an activation has of each call: off, metadata or full")
	flags.DurationVar(&f.timeout, "timeout", 0, "timeout of a request (default 1m)")
	flags.IntVar(&f.retries, "max-retries", 0, "retries of a request that the provider could not serve (default 2)")
	flags.StringVar(&f.Strategy, "strategy", "", "of a route: fallback, round_robin, least_cost or weighted")
	flags.StringSliceVar(&f.targets, "target", nil, "of a route: PROVIDER, PROVIDER/MODEL, either with =WEIGHT")
}

// over returns before with the settings whose flags are set.
func (f *settingFlags) over(before ai.ProviderSettings, flags *pflag.FlagSet) (ai.ProviderSettings, error) {
	out := before
	targets, err := parseTargets(f.targets)
	if err != nil {
		return out, err
	}
	for name, apply := range map[string]func(){
		"kind": func() { out.Kind = f.Kind }, "base-url": func() { out.BaseURL = f.BaseURL }, "secret": func() { out.Secret = f.Secret },
		"model": func() { out.Models = f.Models }, "header": func() { out.Headers = f.Headers }, "log": func() { out.Log = f.Log },
		"requests-per-minute":      func() { out.RequestsPerMinute = f.RequestsPerMinute },
		"input-tokens-per-minute":  func() { out.InputTokensPerMinute = f.InputTokensPerMinute },
		"output-tokens-per-minute": func() { out.OutputTokensPerMinute = f.OutputTokensPerMinute },
		"timeout":                  func() { out.TimeoutMS = f.timeout.Milliseconds() },
		"max-retries":              func() { out.MaxRetries = &f.retries },
		"strategy":                 func() { out.Strategy = f.Strategy },
		"target":                   func() { out.Targets = targets },
	} {
		if flags.Changed(name) {
			apply()
		}
	}
	return out, nil
}

// parseTargets reads the targets of a route.
func parseTargets(texts []string) ([]ai.RouteTarget, error) {
	out := make([]ai.RouteTarget, 0, len(texts))
	for _, text := range texts {
		at, weight, weighted := strings.Cut(text, "=")
		t := ai.RouteTarget{}
		t.Provider, t.Model, _ = strings.Cut(at, "/")
		if weighted {
			n, err := strconv.Atoi(weight)
			if err != nil {
				return nil, fmt.Errorf("--target %q: want PROVIDER, PROVIDER/MODEL, either with =WEIGHT", text)
			}
			t.Weight = n
		}
		out = append(out, t)
	}
	return out, nil
}

func (a commands) setCommand() *cobra.Command {
	var f settingFlags
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Create a provider, or change the settings that the flags name", Args: cobra.ExactArgs(1),
		Long: `Create a provider of models, or change the settings that the flags name. The key is that of a
secret: the server sends it to the provider, and functions do not see it. A route sends calls to its
targets, by its strategy, and to the next one if a provider fails.`,
		Example: `  sous provider set openai --kind openai --base-url https://api.openai.com/v1 --secret default/OPENAI_KEY
  sous provider set openai --requests-per-minute 500 --log metadata
  sous provider set main --kind route --strategy fallback --target openai/gpt-5-mini --target claude`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			before, err := t.Tenant.Provider(cmd.Context(), args[0])
			if err != nil && api.ErrorCode(err) != api.CodeProviderNotFound {
				return err
			}
			settings, err := f.over(before.ProviderSettings, cmd.Flags())
			if err != nil {
				return err
			}
			made, err := t.Tenant.PutProvider(cmd.Context(), args[0], settings, before.Revision)
			if err != nil {
				return err
			}
			return a.print(made)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// header has the columns of providers.
func header() []string {
	return []string{"NAME", "KIND", "LEADS TO", "SECRET", "REQUESTS/MIN", "TOKENS/MIN", "LOG"}
}

// row returns the cells of a provider.
func row(p ai.Provider) []string {
	text := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	number := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	to := p.BaseURL
	if p.Kind == ai.KindRoute {
		names := make([]string, len(p.Targets))
		for i, t := range p.Targets {
			names[i] = t.Provider
		}
		to = p.Strategy + ": " + strings.Join(names, ", ")
	}
	tokens := number(p.InputTokensPerMinute) + " in, " + number(p.OutputTokensPerMinute) + " out"
	if p.InputTokensPerMinute+p.OutputTokensPerMinute == 0 {
		tokens = "-"
	}
	return []string{p.Name, p.Kind, command.Printable(to), text(p.Secret), number(p.RequestsPerMinute), tokens, text(p.Log)}
}

// print prints a provider.
func (a commands) print(p ai.Provider) error {
	return a.Print(p, command.Table(header(), [][]string{row(p)}))
}

func (a commands) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tenant's providers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Providers(cmd.Context())
			if err != nil {
				return err
			}
			return command.PrintList(a.App, found, header(), row)
		},
	}
}

func (a commands) getCommand() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show a provider", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.Target()
			if err != nil {
				return err
			}
			found, err := t.Tenant.Provider(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print(found)
		},
	}
}

func (a commands) deleteCommand() *cobra.Command {
	return a.DeleteCommand(command.Deletion{
		Use: "delete NAME", Short: "Delete a provider", Noun: "the provider %s", Done: "the provider %s",
		Find: func(name string) (func(context.Context) error, error) {
			if err := api.ValidateName("provider", name); err != nil {
				return nil, err
			}
			t, err := a.Target()
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context) error { return t.Tenant.DeleteProvider(ctx, name, 0) }, nil
		},
	})
}
