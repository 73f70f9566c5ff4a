package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// maxDescribed is how many revisions a description has.
const maxDescribed = 5

func newDescribe() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME",
		Short: "Show everything about an object",
		Long: `Shows an object: what differs from the defaults, with --all every field; what is attached
to it and what it is attached to; its conditions, and the Envoys that do not have it; and the
last revisions that changed it, its parts, or what is attached to it.`,
		Example: `  gatehouse describe upstream web
  gatehouse describe route/shop/root --all
  gatehouse describe service shop -o json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeObject,
		RunE:              describeObject,
	}
	cmd.Flags().Bool("all", false, "show every field, also those with the default")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

func describeObject(cmd *cobra.Command, args []string) error {
	kind, name, path, err := namedPath(cmd, args)
	if err != nil {
		return err
	}
	query, err := kind.History(name)
	if err != nil {
		return err
	}
	object, _, err := readObject(cmd, path)
	if err != nil {
		return err
	}
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	links, err := r.linkRows(cmd, kind, path)
	if err != nil {
		return err
	}
	revisions, err := r.revisions(cmd, query, maxDescribed)
	if err != nil {
		return err
	}
	if r.format != formatTable {
		attached := map[string][]string{}
		for _, row := range links {
			attached[strings.ReplaceAll(row[0], " ", "_")] = strings.FieldsFunc(row[1], func(r rune) bool { return r == ',' || r == ' ' })
		}
		return r.write(map[string]any{"object": object, "attached": attached, "revisions": revisions})
	}
	return r.writeDescription(kind, name, object, links, revisions, isSet(cmd, "all"))
}

// writeDescription writes what describe says on a terminal.
func (r *remote) writeDescription(kind client.Kind, name string, object json.RawMessage, links [][]string, revisions []json.RawMessage, all bool) error {
	p := printer{w: r.out}
	p.line("%s %s", kind.Name, client.Printable(name))
	fields, err := fieldsOf(object)
	if err != nil {
		return &runError{err}
	}
	var rows [][]string
	var status json.RawMessage
	hidden := 0
	for _, f := range fields {
		switch {
		case f.Field == "status":
			status = f.After
		case f.Field == kind.NameField || f.Field == kind.In+"_name":
		case !all && (kind.IsStandard(f.Field, f.After) || isEmpty(f.After)):
			hidden++
		default:
			rows = append(rows, []string{"  " + client.Printable(kind.Short(f.Field)), cell(f.After)})
		}
	}
	if p.err == nil {
		p.err = table(r.out, rows...)
	}
	if hidden > 0 {
		p.line("  (%s with the default: --all)", plural(hidden, "field", "fields"))
	}
	links = slices.DeleteFunc(links, func(row []string) bool { return row[1] == "" })
	if len(links) > 0 {
		r.section(&p, links)
	}
	if p.err == nil && status != nil {
		p.err = r.showObjectStatus(status)
	}
	if len(revisions) > 0 {
		p.line("")
		if p.err == nil {
			p.err = historyTable(r.out, revisions)
		}
	}
	return p.outputError()
}

// getAll shows the objects of all kinds that are not inside of others.
func getAll(cmd *cobra.Command) error {
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	everything := map[string]any{}
	rows := [][]string{{"OBJECT", "", "TAGS", "UPDATE_TS"}}
	for _, kind := range client.Kinds() {
		if kind.In != "" {
			continue
		}
		list, err := r.listOf(cmd, kind)
		if err != nil {
			return err
		}
		everything[kind.Plural()] = list
		for _, raw := range list {
			var f map[string]json.RawMessage
			if err := json.Unmarshal(raw, &f); err != nil {
				return &runError{err}
			}
			var shown []string
			for _, column := range kind.Columns {
				if text := shortCell(f[column]); text != "" {
					shown = append(shown, kind.Short(column)+" "+text)
				}
			}
			rows = append(rows, []string{
				kind.Name + "/" + cell(f[kind.NameField]), short(strings.Join(shown, ", ")), shortCell(f["tags"]), cell(f["update_ts"]),
			})
		}
	}
	if r.format != formatTable {
		return r.write(everything)
	}
	if len(rows) == 1 {
		return printEach(r.errOut, "", []string{"there are no objects"})
	}
	return table(r.out, rows...)
}

// listOf lists the objects of a kind that flags of cmd select.
func (r *remote) listOf(cmd *cobra.Command, kind client.Kind) (list []json.RawMessage, err error) {
	query := url.Values{}
	if tag := text(cmd, "tag"); tag != "" {
		query.Set("tag", tag)
	}
	err = r.call(cmd.Context(), func() (err error) {
		list, err = r.List(cmd.Context(), client.Path(kind.Name), query, 0)
		return err
	})
	return list, err
}
