package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newWatch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch KIND[/NAME]",
		Short: "Follow the changes of an object, or of a kind",
		Long: `Prints what each new revision changes in an object, in its parts, and in what is attached to
it; or in all objects of a kind. Events about an object follow too: certificates that end, and
logins that fail. Ctrl-C stops it. "gatehouse events" follows everything, without the changes.`,
		Example: `  gatehouse watch service shop
  gatehouse watch upstreams
  gatehouse watch route/shop/root -o json | jq .message`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := namedObjects(cmd, args, 1)
			if err != nil {
				return err
			}
			concerns, err := concernsObject(objects[0])
			if err != nil {
				return err
			}
			r, err := connectWithin(cmd, eventTimeout)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx := cmd.Context()
			err = r.follow(ctx, func(e client.Event) error { return r.printConcerned(ctx, e, concerns) })
			if err != nil && ctx.Err() == nil {
				return &runError{err}
			}
			return nil
		},
	}
	withServer(cmd)
	if err := cmd.Flags().MarkHidden("timeout"); err != nil {
		panic("watch: " + err.Error()) // withServer has made it
	}
	return withFormat(cmd, "", formatTable, formatJSON)
}

// concernsObject returns what reports whether a path is that of KIND/NAME or below it, or of an object of KIND.
func concernsObject(text string) (func(path string) bool, error) {
	kind, name, err := client.ParseList(text)
	if err != nil {
		return nil, err
	}
	switch {
	case name == "":
		return func(path string) bool { return kindOfPath(path) == kind.Name }, nil
	case kind.In != "" && !strings.Contains(name, "/"): // all parts of an object
		prefix := client.Path(kind.In, name, kind.Name) + "/"
		return func(path string) bool { return strings.HasPrefix(path, prefix) }, nil
	}
	own, err := kind.Path(name)
	if err != nil {
		return nil, err
	}
	return func(path string) bool { return path == own || strings.HasPrefix(path, own+"/") }, nil
}

// kindOfPath is the kind of the object with a path: the word before the last name. A link has that of what it attaches.
func kindOfPath(path string) string {
	parts := strings.Split(path, "/")
	return parts[max(0, len(parts)-2)]
}

// watchedRevision is a revision as watch prints it.
type watchedRevision struct {
	Revision int64           `json:"revision"`
	At       string          `json:"at"`
	Actor    string          `json:"actor"`
	Request  string          `json:"request"`
	Message  string          `json:"message,omitempty"`
	Changes  []client.Change `json:"changes"`
}

// printConcerned prints an event, if it is about what concerns says.
func (r *remote) printConcerned(ctx context.Context, e client.Event, concerns func(path string) bool) error {
	p := printer{w: r.out}
	if e.Event != "change" {
		switch {
		case e.Event != "reset" && (e.Object == "" || !concerns(e.Object)):
		case r.format == formatJSON:
			p.line("%s", e.Data)
		default:
			p.line("%s  %s", client.Printable(e.At), client.Printable(describe(e)))
		}
		return p.outputError()
	}
	raw, err := r.One(ctx, client.Path("revision", fmt.Sprint(e.Revision)))
	if err != nil {
		return err
	}
	var revision watchedRevision
	if err := json.Unmarshal(raw, &revision); err != nil {
		return &runError{fmt.Errorf("reading revision %d: %w", e.Revision, err)}
	}
	revision.Changes = slices.DeleteFunc(revision.Changes, func(c client.Change) bool { return !concerns(c.Path) })
	switch {
	case len(revision.Changes) == 0:
		return nil
	case r.format == formatJSON:
		line, err := json.Marshal(revision)
		if err != nil {
			return &runError{err}
		}
		p.line("%s", line)
	default:
		text := fmt.Sprintf("%s  revision %d by %s: %s", revision.At, revision.Revision, revision.Actor, revision.Request)
		if revision.Message != "" {
			text += " (" + revision.Message + ")"
		}
		p.line("%s", client.Printable(text))
		printChanges(&p, revision.Changes)
	}
	return p.outputError()
}
