package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
)

// Where commands go that were told nothing else.
const (
	defaultURL       = "http://127.0.0.1:8080"
	defaultTenant    = "t_default"
	defaultNamespace = "default"
)

// remoteFlags say which server, and what there, a command is about. Each comes
// from its flag, else from its variable, else from the profile, else it has a
// default.
type remoteFlags struct {
	url, key, tenant, namespace, profile string
}

func (r *remoteFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&r.url, "url", "", "server (SOUS_URL, profile, default "+defaultURL+")")
	flags.StringVar(&r.key, "key", "", "API key (SOUS_KEY, profile); other users of this machine can read command lines, so prefer those")
	flags.StringVar(&r.tenant, "tenant", "", "tenant (SOUS_TENANT, profile, default "+defaultTenant+")")
	flags.StringVar(&r.namespace, "namespace", "", "namespace (SOUS_NAMESPACE, profile, default "+defaultNamespace+")")
	flags.StringVar(&r.profile, "profile", "", "saved profile (SOUS_PROFILE, else the one in use)")
}

// remoteCommand is a group whose commands speak to a server.
func (a *app) remoteCommand(use, short string, children ...*cobra.Command) *cobra.Command {
	group := groupCommand(use, short, children...)
	a.remote.register(group.PersistentFlags())
	return group
}

// target is the server and the place in it that a command works on.
type target struct {
	client    *client.Client
	tenant    *client.Tenant
	namespace *client.Namespace

	tenantName, namespaceName string
	keyed                     bool // requests carry an API key
}

// target resolves flags, environment and profile.
func (a *app) target() (*target, error) {
	path, err := profilesPath()
	if err != nil {
		return nil, err
	}
	saved, err := loadProfiles(path)
	if err != nil {
		return nil, err
	}
	p, err := saved.pick(cmp.Or(a.remote.profile, os.Getenv("SOUS_PROFILE")))
	if err != nil {
		return nil, err
	}
	return newTarget(a.remote.over(p, os.Getenv))
}

// over puts flags and environment over a profile and fills the defaults in. A
// profile's key goes to the profile's server only: whoever points a command at
// another one must give that one's key.
func (r remoteFlags) over(p profile, getenv func(string) string) profile {
	out := profile{
		URL:       cmp.Or(r.url, getenv("SOUS_URL"), p.URL, defaultURL),
		Key:       cmp.Or(r.key, getenv("SOUS_KEY")),
		Tenant:    cmp.Or(r.tenant, getenv("SOUS_TENANT"), p.Tenant, defaultTenant),
		Namespace: cmp.Or(r.namespace, getenv("SOUS_NAMESPACE"), p.Namespace, defaultNamespace),
	}
	if out.Key == "" && out.URL == cmp.Or(p.URL, defaultURL) {
		out.Key = p.Key
	}
	return out
}

func newTarget(p profile) (*target, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	c, err := client.New(p.URL, client.Config{Key: p.Key, UserAgent: "sous/" + buildVersion()})
	if err != nil {
		return nil, err
	}
	t := targetOf(c, p.Tenant, p.Namespace)
	t.keyed = p.Key != ""
	return t, nil
}

func targetOf(c *client.Client, tenant, namespace string) *target {
	t := c.Tenant(tenant)
	return &target{client: c, tenant: t, namespace: t.Namespace(namespace), tenantName: tenant, namespaceName: namespace}
}

// function is the target's function name, refused here already if it can be none.
func (t *target) function(name string) (*client.Function, error) {
	if err := api.ValidateName("function", name); err != nil {
		return nil, err
	}
	return t.namespace.Function(name), nil
}

// functionTarget is target and function at once, for commands about one function.
func (a *app) functionTarget(name string) (*target, *client.Function, error) {
	t, err := a.target()
	if err != nil {
		return nil, nil, err
	}
	fn, err := t.function(name)
	return t, fn, err
}

// parseRef reads --ref.
func parseRef(s string) (api.Ref, error) {
	ref, err := api.ParseRef(s)
	if err != nil {
		return api.Ref{}, fmt.Errorf("--ref: %w", err)
	}
	return ref, nil
}
