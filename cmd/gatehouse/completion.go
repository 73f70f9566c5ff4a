package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

const (
	// completionTimeout is how long a shell is kept waiting for names.
	completionTimeout = time.Second
	// completionNames is the most names that are offered.
	completionNames = 100
)

// complete sets the completion of a flag that cmd has.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the flag is not there: a mistake of this program
	}
}

// completeContext completes the one argument of a command.
func completeContext(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeContexts(cmd, args, typed)
}

func completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	contexts, err := client.ReadContexts(client.ContextsPath(os.Getenv))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, c := range contexts.Contexts {
		names = append(names, c.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeObject completes KIND NAME and KIND/NAME.
func completeObject(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		if word, name, named := strings.Cut(typed, "/"); named {
			kind, err := client.FindKind(word)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeName(cmd, kind, word+"/", name)
		}
		var kinds []string
		for _, k := range client.Kinds() {
			kinds = append(kinds, k.Name)
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp
	case 1:
		if kind, err := client.FindKind(args[0]); err == nil {
			return completeName(cmd, kind, "", typed)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeLink completes KIND/NAME TARGET.
func completeLink(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var kinds []string
	switch len(args) {
	case 0:
		for _, k := range client.Kinds() {
			if len(k.AttachTo) > 0 {
				kinds = append(kinds, k.Name)
			}
		}
	case 1:
		if what, _, err := client.ParseObject(args[0]); err == nil {
			kinds = what.AttachTo
		}
	}
	word, name, named := strings.Cut(typed, "/")
	if !named {
		for i, k := range kinds {
			kinds[i] = k + "/"
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	kind, err := client.FindKind(word)
	if err != nil || !slices.Contains(kinds, kind.Name) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeName(cmd, kind, word+"/", name)
}

// completeName asks the server for names that begin as typed; those of routes
// are SERVICE/ROUTE, those of keys KEYSET/KEY.
func completeName(cmd *cobra.Command, kind client.Kind, prefix, typed string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	path, suffix := client.Path(kind.Name), ""
	if owner, part, ok := strings.Cut(typed, "/"); kind.In != "" && ok {
		path, prefix, typed = client.Path(kind.In, owner, kind.Name), prefix+owner+"/", part
	} else if kind.In != "" {
		kind, suffix, directive = findKind(kind.In), "/", directive|cobra.ShellCompDirectiveNoSpace
		path = client.Path(kind.Name)
	}
	r, err := connectWithin(cmd, completionTimeout)
	if err != nil {
		return nil, directive
	}
	defer r.Close()
	query := url.Values{}
	if typed != "" {
		query.Set("name", typed)
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	list, err := r.List(ctx, path, query, completionNames)
	if err != nil {
		return nil, directive // there is no room for words in a completion
	}
	var names []string
	for _, raw := range list {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) == nil { // what cannot be read is not offered
			names = append(names, prefix+cell(fields[kind.NameField])+suffix)
		}
	}
	return names, directive
}

func findKind(name string) client.Kind {
	kinds := client.Kinds()
	return kinds[slices.IndexFunc(kinds, func(k client.Kind) bool { return k.Name == name })]
}

// completeNewObject completes the kind of an object that is to be created, and its fields.
func completeNewObject(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 && (len(args) > 1 || strings.Contains(args[0], "/")) {
		return completeFields(cmd, args, typed)
	}
	if len(args) > 0 || strings.Contains(typed, "/") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeObject(cmd, args, typed)
}

// completeFields completes KIND NAME and KIND/NAME, and FIELD= behind it.
func completeFields(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") {
		return completeObject(cmd, args, typed)
	}
	word, _, _ := strings.Cut(args[0], "/")
	if kind, _, err := client.ParseList(args[0]); err == nil {
		word = kind.Name
	}
	kind, err := client.FindKind(word)
	if err != nil || strings.Contains(typed, "=") {
		return nil, cobra.ShellCompDirectiveDefault // a file, perhaps
	}
	var fields []string
	for _, name := range kind.FieldNames() {
		fields = append(fields, name+"=")
	}
	return fields, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
