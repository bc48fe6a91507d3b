package command

import (
	"cmp"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/build"
)

// The defaults where neither a flag, nor a variable, nor the profile has a value. They are
// those of a new sous dev.
const (
	DefaultURL       = "http://127.0.0.1:8080"
	DefaultTenant    = "t_default"
	DefaultNamespace = "default"
)

// remoteFlags name the server of a command, and the tenant and namespace on it. Each value
// comes from its flag, else from its variable, else from the profile, else it has a default.
type remoteFlags struct {
	url, key, tenant, namespace, profile string
}

func (r *remoteFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&r.url, "url", "", "server (SOUS_URL, profile, default "+DefaultURL+")")
	flags.StringVar(&r.key, "key", "", "API key (SOUS_KEY, profile); other users of this machine can read command lines, so prefer those")
	flags.StringVar(&r.tenant, "tenant", "", "tenant (SOUS_TENANT, profile, default "+DefaultTenant+")")
	flags.StringVar(&r.namespace, "namespace", "", "namespace (SOUS_NAMESPACE, profile, default "+DefaultNamespace+")")
	flags.StringVar(&r.profile, "profile", "", "saved profile (SOUS_PROFILE, else the one in use)")
}

// RemoteGroup is Group for commands that call a server: it has the flags of
// RegisterRemote.
func (a *App) RemoteGroup(use, short string, children ...*cobra.Command) *cobra.Command {
	group := Group(use, short, children...)
	a.RegisterRemote(group.PersistentFlags())
	return group
}

// RegisterRemote adds the flags that name a server, a tenant and a namespace.
func (a *App) RegisterRemote(flags *pflag.FlagSet) { a.remote.register(flags) }

// NamesServer reports whether a flag or SOUS_URL names the server. A profile does not count.
func (a *App) NamesServer() bool { return a.remote.url != "" || os.Getenv("SOUS_URL") != "" }

// Target is the server, tenant and namespace that a command works on.
type Target struct {
	Client    *client.Client
	Tenant    *client.Tenant
	Namespace *client.Namespace

	TenantName, NamespaceName string
	HasKey                    bool   // requests carry an API key
	ProfileName               string // of the saved profile in use, "" for none
}

// Target returns the target that flags, environment and profile name. It calls no server, so
// a wrong key or an unknown tenant shows at the first request. It fails if the profile file
// cannot be read, if there is no profile of the name, or if a value is malformed.
func (a *App) Target() (*Target, error) {
	path, err := ProfilesPath()
	if err != nil {
		return nil, err
	}
	saved, err := LoadProfiles(path)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(a.remote.profile, os.Getenv("SOUS_PROFILE"))
	p, err := saved.Pick(name)
	if err != nil {
		return nil, err
	}
	t, err := openTarget(a.remote.over(p, os.Getenv), meteredTransport{client.NewTransport(), &a.transfer})
	if err == nil {
		t.ProfileName = cmp.Or(name, saved.Current)
	}
	return t, err
}

// LocalTarget returns the target of a server that this process runs. No profile counts: it may
// name another server.
func LocalTarget(url string) (*Target, error) {
	return openTarget(remoteFlags{url: url}.over(Profile{}, os.Getenv), client.NewTransport())
}

// over returns p with flags, environment and defaults applied. A profile's key is sent to
// the profile's server only: a command for another server needs that server's key. With the
// profile {url: https://a, key: k}, "--url https://b" is called without a key, and so is
// "--url https://a/", because URLs are compared as text.
func (r remoteFlags) over(p Profile, getenv func(string) string) Profile {
	out := Profile{
		URL:       cmp.Or(r.url, getenv("SOUS_URL"), p.URL, DefaultURL),
		Key:       cmp.Or(r.key, getenv("SOUS_KEY")),
		Tenant:    cmp.Or(r.tenant, getenv("SOUS_TENANT"), p.Tenant, DefaultTenant),
		Namespace: cmp.Or(r.namespace, getenv("SOUS_NAMESPACE"), p.Namespace, DefaultNamespace),
	}
	if out.Key == "" && out.URL == cmp.Or(p.URL, DefaultURL) {
		out.Key = p.Key
	}
	return out
}

// openTarget returns the target of a profile whose fields are set. Its requests are sent by
// transport.
func openTarget(p Profile, transport http.RoundTripper) (*Target, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c, err := client.New(p.URL, client.Config{Key: p.Key, UserAgent: "sous/" + build.Version(), Transport: transport})
	if err != nil {
		return nil, err
	}
	t := NewTarget(c, p.Tenant, p.Namespace)
	t.HasKey = p.Key != ""
	return t, nil
}

// NewTarget returns the target that names tenant and namespace on the server of c.
func NewTarget(c *client.Client, tenant, namespace string) *Target {
	t := c.Tenant(tenant)
	return &Target{Client: c, Tenant: t, Namespace: t.Namespace(namespace), TenantName: tenant, NamespaceName: namespace}
}

// Function returns the function called name. It refuses a name that no function can have.
func (t *Target) Function(name string) (*client.Function, error) {
	if err := api.ValidateName("function", name); err != nil {
		return nil, err
	}
	return t.Namespace.Function(name), nil
}
