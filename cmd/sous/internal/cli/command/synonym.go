package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/codesous/sous/api/nearest"
)

// commandSynonyms are names that other command lines have for subcommands, with those of sous.
// The first of them that a group has is suggested.
var commandSynonyms = map[string][]string{
	"ls":       {"list"},
	"rm":       {"delete"},
	"remove":   {"delete"},
	"destroy":  {"delete"},
	"show":     {"get"},
	"describe": {"get"},
	"info":     {"get"},
	"inspect":  {"get"},
	"put":      {"set"},
	"save":     {"set"},
	"add":      {"set", "create", "enqueue"},
	"new":      {"init", "create"},
	"create":   {"deploy", "set"},
	"publish":  {"deploy"},
	"update":   {"deploy", "set"},
	"upload":   {"deploy"},
	"push":     {"deploy", "enqueue"},
	"call":     {"invoke"},
	"run":      {"invoke", "dev"},
	"start":    {"dev"},
	"archive":  {"kill"},
	"login":    {"profile"},
	"config":   {"profile"},
}

// flagSynonyms are the same for flags.
var flagSynonyms = map[string][]string{
	"payload": {"event", "callback-payload"},
	"data":    {"event", "payload", "body"},
	"body":    {"event", "payload"},
	"input":   {"event", "payload"},
	"delay":   {"in"},
	"env":     {"config"},
	"timeout": {"config"},
	"memory":  {"config"},
	"port":    {"listen"},
	"host":    {"listen", "url"},
	"server":  {"url"},
	"token":   {"key"},
	"expire":  {"expires"},
	"retries": {"max-attempts"},
	"since":   {"from"},
	"tail":    {"follow"},
	"watch":   {"follow"},
}

// similarCommands returns the commands that name below cmd was probably meant to be: subcommands
// with similar names, those that other command lines call so, and those of another group.
//
//	sous fn invok    invoke
//	sous fn ls       list
//	sous logs        fn logs, activation logs
func similarCommands(cmd *cobra.Command, name string) []string {
	// Any two names of two letters are at most two edits apart.
	cmd.SuggestionsMinimumDistance = max(1, min(suggestWithin, len(name)-1))
	has := func(group *cobra.Command, name string) bool {
		return slices.ContainsFunc(group.Commands(), func(c *cobra.Command) bool { return c.Name() == name && c.IsAvailableCommand() })
	}
	for _, synonym := range commandSynonyms[name] {
		if has(cmd, synonym) {
			return []string{synonym}
		}
	}
	var below []string
	if !cmd.HasParent() {
		for _, group := range cmd.Commands() {
			if has(group, name) {
				below = append(below, group.Name()+" "+name)
			}
		}
	}
	if len(below) == 0 || len(below) > maxSuggestions {
		return cmd.SuggestionsFor(name)
	}
	return below
}

// maxSuggestions bounds the groups that similarCommands names: list is in most of them.
const maxSuggestions = 3

// similarFlag returns the flag of known that name was probably meant to be, "" if none.
func similarFlag(name string, known []string) string {
	if meant := nearest.Name(name, known); meant != "" {
		return meant
	}
	for _, synonym := range flagSynonyms[name] {
		if slices.Contains(known, synonym) {
			return synonym
		}
	}
	return ""
}

// asAlternatives joins names with "or".
func asAlternatives(names []string) string { return strings.Join(names, " or ") }
