package command

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/api/nearest"
)

// suggestNameWithin bounds the search for a name that was probably meant: the error waits for it.
const suggestNameWithin = time.Second

// misspelt is the error of a name that does not exist, with what was probably meant.
type misspelt struct {
	error
	meant string // in the form of the command line
}

// Unwrap returns the error without the suggestion.
func (e *misspelt) Unwrap() error { return e.error }

// guess describes the search for a name that was probably meant.
type guess struct {
	target  *Target
	cmd     *cobra.Command // which the user ran
	missing string         // the name that does not exist
}

// existing returns the names of the kind of resource that a code reports as missing.
var existing = map[api.Code]func(context.Context, guess) ([]string, error){
	api.CodeFunctionNotFound: ofTarget(functionNames),
	api.CodeQueueNotFound:    ofTarget(queueNames),
	api.CodeTriggerNotFound:  ofTarget(triggerQueues),
	api.CodeScheduleNotFound: ofTarget(scheduleNames),
	api.CodeSecretNotFound:   ofTarget(secretNames),
	api.CodeBindingNotFound:  ofTarget(bindingNames),
	api.CodeDomainNotFound:   ofTarget(domainNames),
	api.CodeWebhookNotFound:  ofTarget(webhookNames),
	api.CodeProviderNotFound: ofTarget(providerNames),
	api.CodeKVNotFound:       ofTarget(kvKeys),
	api.CodeTaskNotFound:     ofTarget(openTaskPaths),
	api.CodeTenantNotFound: func(ctx context.Context, s guess) ([]string, error) {
		names, err := tenantNames(ctx, s.target) // also the one of the command
		return slices.DeleteFunc(names, func(name string) bool { return name == s.missing }), err
	},
	api.CodeAliasNotFound: func(ctx context.Context, s guess) ([]string, error) {
		return aliasNames(ctx, s.target, functionArgument(s.cmd))
	},
	api.CodeDocumentNotFound: func(ctx context.Context, s guess) ([]string, error) {
		if s.cmd.Parent().Name() == "owner" {
			return ownerIDs(ctx, s.target)
		}
		return documentNamespaces(ctx, s.target, s.cmd)
	},
}

// ofTarget returns the search among all names of a kind.
func ofTarget(names func(context.Context, *Target) ([]string, error)) func(context.Context, guess) ([]string, error) {
	return func(ctx context.Context, s guess) ([]string, error) { return names(ctx, s.target) }
}

// SuggestName returns err, of cmd, with the name that was probably meant, if a server answered
// that a name does not exist and there is a similar one: function "helo" does not exist; did you
// mean "hello"? It lists the names with the key of the command, so it suggests none that the key
// may not list, and waits for a second at most. Without an answer, err stays as it is.
func (a *App) SuggestName(ctx context.Context, cmd *cobra.Command, err error) error {
	var answered *client.ResponseError
	if !errors.As(err, &answered) || answered.Status != http.StatusNotFound || cmd.Flags().Lookup("namespace") == nil {
		return err
	}
	names := existing[answered.Err.Code]
	if names == nil {
		return err
	}
	t, failed := a.Target()
	if failed != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, suggestNameWithin)
	defer cancel()
	namespace := make(chan string, 1)
	go func() { namespace <- similarNamespace(ctx, t, cmd) }()
	s := guess{target: t, cmd: cmd, missing: missingName(answered.Err, cmd.Flags().Args())}
	if found, failed := names(ctx, s); failed == nil {
		if meant := nearestName(s.missing, found); meant != "" {
			return &misspelt{err, strconv.Quote(meant)}
		}
	}
	if meant := <-namespace; meant != "" {
		return &misspelt{err, "--namespace " + meant}
	}
	return err
}

// SimilarFunction returns the function of the target's namespace that was probably meant by name,
// which does not exist; "" if none is similar or they cannot be listed within a second.
func SimilarFunction(ctx context.Context, t *Target, name string) string {
	ctx, cancel := context.WithTimeout(ctx, suggestNameWithin)
	defer cancel()
	found, err := functionNames(ctx, t)
	if err != nil {
		return ""
	}
	return nearestName(name, found)
}

// similarNamespace returns the namespace that was probably meant by --namespace, "" if the command
// has no such flag or the namespace exists: a name is also missing because its namespace is misspelt.
func similarNamespace(ctx context.Context, t *Target, cmd *cobra.Command) string {
	if !cmd.Flags().Changed("namespace") {
		return ""
	}
	found, err := namespaceNames(ctx, t)
	if err != nil {
		return ""
	}
	return nearestName(t.NamespaceName, found)
}

// nearestName returns the one of found, a list for a completion, that name was probably meant to
// be; "" if none is similar, or if name is one of them.
func nearestName(name string, found []string) string {
	names := make([]string, 0, len(found))
	for _, f := range found {
		f, _, _ = strings.Cut(f, "\t") // a description may follow
		names = append(names, f)
	}
	if slices.Contains(names, name) {
		return ""
	}
	return nearest.Name(name, names)
}

// missingName returns the name that a server did not find: the one that its message quotes, or
// the arguments of the command, such as those of a task. A document is missing if its namespace
// is, so the first argument counts there.
func missingName(err *api.Error, args []string) string {
	if err.Code == api.CodeDocumentNotFound && len(args) > 0 {
		return args[0]
	}
	if at := strings.IndexByte(err.Message, '"'); at >= 0 {
		if quoted, failed := strconv.QuotedPrefix(err.Message[at:]); failed == nil {
			name, _ := strconv.Unquote(quoted) // it is quoted
			return name
		}
	}
	return strings.Join(args, "/")
}

// functionArgument returns the function that a command names: by --function, by an argument that
// its usage calls FUNCTION, or by its first argument.
func functionArgument(cmd *cobra.Command) string {
	args := cmd.Flags().Args()
	if function, _ := cmd.Flags().GetString("function"); function != "" {
		return function
	}
	for i, word := range strings.Fields(cmd.Use)[1:] {
		if strings.Trim(word, "[]") == "FUNCTION" && i < len(args) {
			return args[i]
		}
	}
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
