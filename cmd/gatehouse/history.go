package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newHistory() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [REVISION|KIND/NAME]",
		Short: "Show the revisions of the configuration or of an object, or what one of them changed",
		Long: `Lists the revisions of the configuration, the newest first, with their author and
request, and why they were made if somebody said so (-m). With an object, lists those that
changed it, its parts, or what is attached to it; it may be deleted. With a revision, shows
what it created (+), changed (~) and deleted (-).`,
		Example: `  gatehouse history
  gatehouse history route/shop/root
  gatehouse history --limit 0   # all of them
  gatehouse history --by ann --kind upstream --since 24h
  gatehouse history 42`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := cmd.Flags().GetInt("limit")
			if err != nil {
				return err
			}
			if limit < 0 {
				return fmt.Errorf("--limit: %d is not a number of revisions; 0 means all", limit)
			}
			one := len(args) == 1 && !strings.Contains(args[0], "/")
			path, query := "/revision", url.Values{}
			switch {
			case one:
				path, err = revisionPath(args[0])
			case len(args) > 0:
				query, err = historyQuery(cmd, args)
			}
			if err != nil {
				return err
			}
			for _, name := range []string{"by", "kind", "since"} {
				if !cmd.Flags().Changed(name) {
					continue
				}
				if one {
					return fmt.Errorf("--%s is for a list of revisions, and not for one of them", name)
				}
				query.Set(name, text(cmd, name))
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			if one {
				return r.showRevision(cmd, path)
			}
			return r.showHistory(cmd, query, limit)
		},
	}
	cmd.Flags().String("by", "", "only revisions of this actor: the name of a token, admin or local")
	cmd.Flags().String("kind", "", "only revisions that changed an object of this kind")
	cmd.Flags().String("since", "", "only revisions since a date or time, or for this long: 2026-12-24, 24h, 7d")
	cmd.Flags().Int("limit", 20, "number of revisions to show; 0 means all")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

// historyQuery selects the revisions of the object that the arguments name.
func historyQuery(cmd *cobra.Command, args []string) (url.Values, error) {
	kind, name, err := namedObject(cmd, args)
	if err != nil {
		return nil, err
	}
	return kind.History(name)
}

func (r *remote) showHistory(cmd *cobra.Command, query url.Values, limit int) error {
	list, err := r.revisions(cmd, query, limit)
	switch {
	case err != nil:
		return err
	case r.format != formatTable:
		return r.write(list)
	case len(list) == 0 && len(query) > 0:
		return printEach(r.errOut, "", []string{"no revision that is kept has changed " + cmp.Or(query.Get("object"), "such an object")})
	}
	return historyTable(r.out, list)
}

func (r *remote) revisions(cmd *cobra.Command, query url.Values, limit int) (list []json.RawMessage, err error) {
	err = r.call(cmd.Context(), func() (err error) {
		list, err = r.List(cmd.Context(), "/revision", query, limit)
		return err
	})
	return list, err
}

func historyTable(out io.Writer, list []json.RawMessage) error {
	rows := [][]string{{"REVISION", "AT", "ACTOR", "REQUEST", "CHANGES", "MESSAGE"}}
	for _, raw := range list {
		var f map[string]json.RawMessage
		if err := json.Unmarshal(raw, &f); err != nil {
			return &runError{fmt.Errorf("reading the revisions: %w", err)}
		}
		rows = append(rows, []string{cell(f["revision"]), cell(f["at"]), shortCell(f["actor"]), shortCell(f["request"]), cell(f["changes"]), shortCell(f["message"])})
	}
	return table(out, rows...)
}

func (r *remote) showRevision(cmd *cobra.Command, path string) error {
	var raw json.RawMessage
	err := r.call(cmd.Context(), func() (err error) {
		raw, err = r.One(cmd.Context(), path)
		return err
	})
	if err != nil {
		return err
	}
	if r.format != formatTable {
		return r.write(raw)
	}
	var f struct {
		Revision                    int64
		At, Actor, Request, Message string
		Changes                     []client.Change
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return &runError{fmt.Errorf("reading %s: %w", path, err)}
	}
	p := printer{w: r.out}
	p.line("revision %d at %s by %s: %s", f.Revision, client.Printable(f.At), client.Printable(f.Actor), client.Printable(f.Request))
	if f.Message != "" {
		p.line("  %s", client.Printable(f.Message))
	}
	printChanges(&p, f.Changes)
	return p.outputError()
}
