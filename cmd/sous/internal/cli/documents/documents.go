// Package documents holds the commands about documents (sous storage) and about the
// installs that own them (sous owner).
//
//	sous storage  documents.go   put, get, list, delete, bulk, transact
//	              namespaces.go  namespaces, drop, changes, schema
//	sous owner    install.go     list, get, put, delete
//
// An install owns namespaces, and a namespace has documents. These namespaces are not those
// of functions and queues, which --namespace names. So every command of sous storage takes the
// namespace as an argument, and needs --install or --function for the owner:
//
//	sous storage get settings theme --install crm
//	sous storage get settings theme --namespace shop --function cart   # install fn.shop.cart
//
// docs/documents.md explains revisions, quotas and the change feed.
package documents

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/client"
	"github.com/codesous/sous/cmd/sous/internal/cli/command"
)

// commands builds the commands of this package.
type commands struct{ *command.App }

// Commands returns the commands about documents and the installs that own them.
func Commands(a *command.App) []*cobra.Command {
	c := commands{a}
	return []*cobra.Command{c.documentCommand(), c.installCommand()}
}

// ownerFlags name the install whose documents a command works on. Exactly one of them is set.
type ownerFlags struct{ install, function string }

// documentCommand returns sous storage. All its commands share f, which the flags of the group
// set before any of them runs.
func (a commands) documentCommand() *cobra.Command {
	var f ownerFlags
	group := a.RemoteGroup("storage", "Documents of installs: JSON under keys, with revisions, metadata and times to live",
		a.putCommand(&f), a.getCommand(&f), a.listCommand(&f), a.deleteCommand(&f),
		a.bulkCommand(&f), a.transactCommand(&f),
		a.namespacesCommand(&f), a.dropCommand(&f), a.changesCommand(&f), a.schemaCommand(&f))
	f.register(group.PersistentFlags())
	return group
}

func (f *ownerFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.install, "install", "", "the install that owns the documents: an id, or fn.<namespace>.<function>")
	flags.StringVar(&f.function, "function", "", "in place of --install: this function of --namespace owns the documents")
}

// ownerTarget returns the install that f names. It fails unless exactly one of the two flags
// is set, and for an id that no install can have. It sends no request.
func (a commands) ownerTarget(f *ownerFlags) (*client.Install, error) {
	if (f.install == "") == (f.function == "") {
		return nil, errors.New("name the owner of the documents: --install ID or --function NAME")
	}
	t, err := a.Target()
	if err != nil {
		return nil, err
	}
	install := f.install
	if f.function != "" {
		install = api.FunctionInstall(t.NamespaceName, f.function)
	}
	return t.Tenant.Install(install), api.ValidateInstall(install)
}

// putCommand returns sous storage put. Without --if-revision and --if-new it replaces any
// document of the key. Without --ttl the document has no end, also if the one before had one.
func (a commands) putCommand(f *ownerFlags) *cobra.Command {
	var metadata string
	var ttl time.Duration
	var guard revisionFlags
	cmd := &cobra.Command{
		Use: "put NAMESPACE KEY VALUE", Short: "Write a document: JSON, @FILE, or - for stdin",
		Example: `  sous storage put settings invoice-defaults '{"currency":"EUR"}' --install crm
  sous storage put settings draft @draft.json --function hello --ttl 24h --if-new`,
		Args: cobra.ExactArgs(3),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		install, err := a.ownerTarget(f)
		if err != nil {
			return err
		}
		put := api.DocumentPut{Namespace: args[0], DocumentItem: api.DocumentItem{Key: args[1], IfRevision: guard.revision(cmd)}}
		put.Value, err = command.ReadJSONOperand("VALUE", args[2], a.Stdin, api.MaxRequestBytes)
		if err != nil {
			return err
		}
		put.Metadata, err = command.ReadJSONArg("metadata", metadata, a.Stdin, api.MaxRequestBytes)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("ttl") {
			seconds := int64(ttl / time.Second)
			put.TTLSeconds = &seconds
		}
		return a.printDocument(install.PutDocument(cmd.Context(), put))
	}
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON object, or @FILE")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the document is kept, 1m to 720h (default: for ever)")
	guard.register(cmd)
	cmd.Flags().BoolVar(&guard.absent, "if-new", false, "only if the document does not exist")
	cmd.MarkFlagsMutuallyExclusive("if-new", "if-revision")
	return cmd
}

// revisionFlags are the condition of a read or a write on the revision. The server answers
// REVISION_MISMATCH if it does not hold.
type revisionFlags struct {
	number int64 // of --if-revision
	absent bool  // --if-new is set; only put has it
}

func (r *revisionFlags) register(cmd *cobra.Command) {
	cmd.Flags().Int64Var(&r.number, "if-revision", 0, "only if it has this revision now")
}

// revision returns the revision that the document must have, nil for any, 0 for a document
// that must not exist. --if-new leaves number at 0, because it excludes --if-revision.
func (r *revisionFlags) revision(cmd *cobra.Command) *int64 {
	if !cmd.Flags().Changed("if-revision") && !r.absent {
		return nil
	}
	return &r.number
}

// printDocument prints the result of a call of the client, whose error it returns. An answer to
// a write has no value and no metadata.
func (a commands) printDocument(d api.Document, err error) error {
	if err != nil {
		return err
	}
	rows := [][]string{
		{"NAMESPACE", d.Namespace},
		{"REVISION", strconv.FormatInt(d.Revision, 10)},
		{"EXPIRES", expiryText(&d)},
		{"CREATED", command.TimeText(d.CreatedAt.UnixMilli())},
		{"UPDATED", command.TimeText(d.UpdatedAt.UnixMilli())},
	}
	if len(d.Metadata) > 0 {
		rows = append(rows, []string{"METADATA", string(d.Metadata)})
	}
	if len(d.Value) > 0 {
		rows = append(rows, []string{"VALUE", string(d.Value)})
	}
	return a.Print(d, command.Table([]string{"KEY", d.Key}, rows))
}

func expiryText(d *api.Document) string {
	if d.TTLExpiresAt == nil {
		return "-"
	}
	return command.TimeText(d.TTLExpiresAt.UnixMilli())
}

// getCommand returns sous storage get. --value prints the value as it is stored, for a pipe.
func (a commands) getCommand(f *ownerFlags) *cobra.Command {
	var value bool
	var guard revisionFlags
	cmd := &cobra.Command{
		Use: "get NAMESPACE KEY", Short: "Show a document", Args: cobra.ExactArgs(2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		install, err := a.ownerTarget(f)
		if err != nil {
			return err
		}
		d, err := install.Document(cmd.Context(), api.DocumentGet{Namespace: args[0], Key: args[1], IfRevision: guard.revision(cmd)})
		if err != nil || !value {
			return a.printDocument(d, err)
		}
		return a.Print(d.Value, string(d.Value)+"\n")
	}
	cmd.Flags().BoolVar(&value, "value", false, "print the value alone, as JSON")
	guard.register(cmd)
	return cmd
}

// listCommand returns sous storage list. It asks for pages of the largest size, and for values
// only with --values: they may be 64 KiB each.
func (a commands) listCommand(f *ownerFlags) *cobra.Command {
	var list api.DocumentList
	var metadata map[string]string
	cmd := &cobra.Command{
		Use: "list NAMESPACE", Short: "List documents by key",
		Example: `  sous storage list settings --install crm --prefix invoice- --metadata kind=defaults`,
		Args:    cobra.ExactArgs(1),
	}
	limit := command.RegisterLimit(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		install, err := a.ownerTarget(f)
		if err != nil {
			return err
		}
		list.Namespace, list.IncludeMetadata = args[0], true
		list.Limit = api.MaxDocumentPage
		list.Metadata, err = metadataFilter(metadata)
		if err != nil {
			return err
		}
		items, more, err := command.Collect(allDocuments(cmd, install, list), *limit)
		if err != nil {
			return err
		}
		a.NoteMore(more)
		return command.PrintList(a.App, items, []string{"KEY", "REVISION", "UPDATED", "EXPIRES", "METADATA", "VALUE"}, func(d api.Document) []string {
			return []string{d.Key, strconv.FormatInt(d.Revision, 10), command.TimeText(d.UpdatedAt.UnixMilli()), expiryText(&d), string(d.Metadata), cmp.Or(string(d.Value), "-")}
		})
	}
	cmd.Flags().StringVar(&list.KeyPrefix, "prefix", "", "only keys with this prefix")
	cmd.Flags().BoolVar(&list.IncludeValues, "values", false, "print the values too")
	cmd.Flags().StringToStringVar(&metadata, "metadata", nil, "only documents whose metadata has this member: NAME=JSON or NAME=TEXT")
	return cmd
}

// metadataFilter returns the values as JSON. A value that is no JSON becomes a JSON string:
// --metadata kind=draft is the string "draft", and --metadata pages=3 is the number 3.
func metadataFilter(given map[string]string) (map[string]json.RawMessage, error) {
	if len(given) == 0 {
		return nil, nil //nolint:nilnil // nil is no filter
	}
	out := make(map[string]json.RawMessage, len(given))
	for name, text := range given {
		out[name] = json.RawMessage(text)
		if json.Valid(out[name]) {
			continue
		}
		raw, err := api.EncodeJSON(text)
		if err != nil {
			return nil, err
		}
		out[name] = raw
	}
	return out, nil
}

// allDocuments returns all documents of a listing, page by page. It ends at the first error.
// client.All is for lists by GET; this one is a POST with the cursor in its body.
func allDocuments(cmd *cobra.Command, install *client.Install, list api.DocumentList) iter.Seq2[api.Document, error] {
	return func(yield func(api.Document, error) bool) {
		for {
			page, err := install.Documents(cmd.Context(), list)
			if err != nil {
				yield(api.Document{}, err)
				return
			}
			for _, d := range page.Items {
				if !yield(d, nil) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			list.Cursor = *page.NextCursor
		}
	}
}

// deleteCommand returns sous storage delete. It does not ask, as Confirm would: it removes a
// single document. Without --if-revision it succeeds if there is no document.
func (a commands) deleteCommand(f *ownerFlags) *cobra.Command {
	var guard revisionFlags
	cmd := &cobra.Command{
		Use: "delete NAMESPACE KEY", Short: "Delete a document, if it exists", Args: cobra.ExactArgs(2),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		install, err := a.ownerTarget(f)
		if err != nil {
			return err
		}
		if err := install.DeleteDocument(cmd.Context(), api.DocumentDelete{Namespace: args[0], Key: args[1], IfRevision: guard.revision(cmd)}); err != nil {
			return err
		}
		a.Note("%s deleted", args[1])
		return nil
	}
	guard.register(cmd)
	return cmd
}

func (a commands) bulkCommand(f *ownerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "bulk NAMESPACE ITEMS", Short: "Write up to 20 documents, all or none: a JSON list, @FILE, or - for stdin",
		Example: `  sous storage bulk settings '[{"key":"a","value":1},{"key":"b","value":2,"ifRevision":0}]' --install crm`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			bulk := api.DocumentBulkPut{Namespace: args[0]}
			install, err := a.documentItems(f, args[1], &bulk.Items)
			if err != nil {
				return err
			}
			return a.printResults(install.BulkPut(cmd.Context(), bulk))
		},
	}
}

func (a commands) transactCommand(f *ownerFlags) *cobra.Command {
	return &cobra.Command{
		Use: "transact NAMESPACE STEPS", Short: "Check and write up to 20 documents, all or none: a JSON list, @FILE, or - for stdin",
		Example: `  sous storage transact accounts '[{"op":"check","key":"ledger","ifRevision":4},{"op":"put","key":"alice","value":90},{"op":"delete","key":"hold"}]' --install crm`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			t := api.DocumentTransact{Namespace: args[0]}
			install, err := a.documentItems(f, args[1], &t.Operations)
			if err != nil {
				return err
			}
			return a.printResults(install.Transact(cmd.Context(), t))
		},
	}
}

// documentItems decodes the JSON list in arg into items, and returns the install that f
// names. It refuses a member that no item has: a misspelt ifRevision would otherwise write
// without a condition.
func (a commands) documentItems(f *ownerFlags, arg string, items any) (*client.Install, error) {
	install, err := a.ownerTarget(f)
	if err != nil {
		return nil, err
	}
	raw, err := command.ReadJSONOperand("the list", arg, a.Stdin, api.MaxRequestBytes)
	if err != nil {
		return nil, err
	}
	return install, command.DecodeStrict("the list", raw, items)
}

// printResults prints the result of each item in the order of the list. A revision of 0 is
// that of a key without a document.
func (a commands) printResults(results api.DocumentResults, err error) error {
	if err != nil {
		return withItems(err)
	}
	return command.PrintList(a.App, results.Items, []string{"KEY", "REVISION", "EXPIRES"}, func(r api.DocumentResult) []string {
		d := api.Document{TTLExpiresAt: r.TTLExpiresAt}
		return []string{r.Key, strconv.FormatInt(r.Revision, 10), expiryText(&d)}
	})
}

// withItems adds the failed items to the message of a refusal, by their positions in the
// list, from 0: "…; items 2: REVISION_MISMATCH".
func withItems(err error) error {
	var refused *api.Error
	if !errors.As(err, &refused) || len(refused.Items) == 0 {
		return err
	}
	var each []string
	for _, item := range refused.Items {
		each = append(each, fmt.Sprintf("%d: %s", item.Index, item.Code))
	}
	refused.Message += "; items " + strings.Join(each, ", ")
	return err
}
