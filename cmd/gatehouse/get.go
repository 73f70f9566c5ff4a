package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get KIND [NAME]",
		Short: "Show objects of a kind, one of them, or all objects",
		Long:  getHelp(),
		Example: `  gatehouse get upstreams
  gatehouse get upstream/blue -o yaml
  gatehouse get route shop
  gatehouse get route shop/root
  gatehouse get keys partners
  gatehouse get all
  gatehouse get services --tag team-a -o json
  gatehouse get secrets --expires-before 30d`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "all" {
				return getAll(cmd)
			}
			objects, err := namedObjects(cmd, args, 1)
			if err != nil {
				return err
			}
			kind, name, err := client.ParseList(objects[0])
			if err != nil {
				return err
			}
			path, one, err := pathOf(kind, name)
			if err != nil {
				return err
			}
			query := url.Values{}
			for _, flag := range []string{"tag", "expires-before"} {
				if one && text(cmd, flag) != "" {
					return fmt.Errorf("--%s chooses from all %s; leave out the name %q", flag, kind.Plural(), name)
				}
			}
			if tag := text(cmd, "tag"); tag != "" {
				query.Set("tag", tag)
			}
			if err := expiresBefore(cmd, kind, query, time.Now()); err != nil {
				return err
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			if one {
				return r.showOne(cmd, kind, path)
			}
			return r.showList(cmd, kind, path, query)
		},
	}
	cmd.Flags().String("tag", "", "show only objects with this tag")
	cmd.Flags().String("expires-before", "", "show only secrets whose certificate expires before: 30d or 12h from now, or a date such as 2026-12-24")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

// getHelp says which kinds there are.
func getHelp() string {
	var names, owned []string
	for _, k := range client.Kinds() {
		names = append(names, k.Name)
		if k.In != "" {
			owned = append(owned, "get "+k.Name+" "+strings.ToUpper(k.In))
		}
	}
	last := len(names) - 1
	return fmt.Sprintf(`Shows all objects of a kind, or all fields of one. The kinds are
%s and %s, or their plurals.
Those that belong to another object need its name: %s.
get all shows the objects of all kinds, without those inside of others.
The table of secrets says which host names each is for, when it expires and which services use it.`,
		strings.Join(names[:last], ", "), names[last], strings.Join(owned, ", "))
}

// pathOf is the path of a list or of one object.
func pathOf(kind client.Kind, name string) (path string, one bool, err error) {
	switch {
	case kind.In != "" && name == "":
		return "", false, fmt.Errorf("name the %s: gatehouse get %s %s", kind.In, kind.Name, strings.ToUpper(kind.In))
	case kind.In != "" && !strings.Contains(name, "/"):
		return client.Path(kind.In, name, kind.Name), false, nil
	case name == "":
		return client.Path(kind.Name), false, nil
	}
	path, err = kind.Path(name)
	return path, true, err
}

// maxListed is how many attached objects a table names.
const maxListed = 20

func (r *remote) showOne(cmd *cobra.Command, kind client.Kind, path string) error {
	var object json.RawMessage
	err := r.call(cmd.Context(), func() (err error) {
		object, err = r.One(cmd.Context(), path)
		return err
	})
	if err != nil {
		return err
	}
	if r.format != formatTable {
		return r.write(object)
	}
	fields, err := fieldsOf(object)
	if err != nil {
		return &runError{err}
	}
	var rows [][]string
	var status json.RawMessage
	for _, f := range fields {
		if f.Field == "status" {
			status = f.After
			continue
		}
		rows = append(rows, []string{client.Printable(f.Field), cell(f.After)})
	}
	links, err := r.linkRows(cmd, kind, path)
	if err != nil {
		return err
	}
	rows = append(rows, links...)
	if err := table(r.out, rows...); err != nil || status == nil {
		return err
	}
	return r.showObjectStatus(status)
}

// linkRows names what is inside of an object, what is attached to it, and what it is attached to.
func (r *remote) linkRows(cmd *cobra.Command, kind client.Kind, path string) (rows [][]string, err error) {
	for _, k := range client.Kinds() {
		label := k.Plural()
		switch {
		case k.In == kind.Name || slices.Contains(k.AttachTo, kind.Name):
		case slices.Contains(kind.AttachTo, k.Name):
			label = "attached to " + label
		default:
			continue
		}
		names, err := r.namesAt(cmd, k, path)
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{label, names})
	}
	return rows, nil
}

// namesAt names the objects of a kind that are attached to the object at path, or inside of it.
func (r *remote) namesAt(cmd *cobra.Command, kind client.Kind, path string) (string, error) {
	var list []json.RawMessage
	err := r.call(cmd.Context(), func() (err error) {
		list, err = r.List(cmd.Context(), path+client.Path(kind.Name), nil, maxListed+1)
		return err
	})
	if err != nil {
		return "", err
	}
	var names []string
	for _, object := range list[:min(len(list), maxListed)] {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(object, &fields); err != nil {
			return "", &runError{fmt.Errorf("reading the %s of %s: %w", kind.Plural(), path, err)}
		}
		name := cell(fields[kind.NameField])
		if owner := cell(fields[kind.In+"_name"]); owner != "" && !strings.HasPrefix(path, client.Path(kind.In, owner)) {
			name = owner + "/" + name
		}
		names = append(names, name)
	}
	if len(list) > maxListed {
		names = append(names, "and more")
	}
	return strings.Join(names, ", "), nil
}

func (r *remote) showList(cmd *cobra.Command, kind client.Kind, path string, query url.Values) error {
	var list []json.RawMessage
	err := r.call(cmd.Context(), func() (err error) {
		list, err = r.List(cmd.Context(), path, query, 0)
		return err
	})
	if err != nil {
		return err
	}
	if r.format != formatTable {
		return r.write(list)
	}
	if len(list) == 0 {
		p := printer{w: r.errOut}
		p.line("there are no %s", kind.Plural())
		return p.outputError()
	}
	if kind.Name == "secret" {
		return r.showSecrets(cmd, list)
	}
	columns := append(append([]string{kind.NameField}, kind.Columns...), "tags", "update_ts")
	heading := make([]string, len(columns))
	for i, c := range columns {
		heading[i] = strings.ToUpper(strings.TrimPrefix(c, kind.Name+"_"))
	}
	rows := [][]string{heading}
	for _, object := range list {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(object, &fields); err != nil {
			return &runError{fmt.Errorf("reading %s: %w", path, err)}
		}
		row := make([]string, len(columns))
		for i, c := range columns {
			row[i] = shortCell(fields[c])
		}
		rows = append(rows, row)
	}
	return table(r.out, rows...)
}
