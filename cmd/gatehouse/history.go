package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newHistory() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [REVISION]",
		Short: "Show the revisions of the configuration, or what one of them changed",
		Long: `Lists the revisions of the configuration, the newest first, with their author and
request; or shows what one revision created (+), changed (~) and deleted (-).`,
		Example: `  gatehouse history
  gatehouse history --limit 0   # all of them
  gatehouse history 42`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			limit, err := cmd.Flags().GetInt("limit")
			if err != nil {
				return err
			}
			if limit < 0 {
				return fmt.Errorf("--limit: %d is not a number of revisions; 0 means all", limit)
			}
			path := "/revision"
			if len(args) == 1 {
				if path, err = revisionPath(args[0]); err != nil {
					return err
				}
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			if len(args) == 1 {
				return r.showRevision(cmd, path)
			}
			return r.showHistory(cmd, path, limit)
		},
	}
	cmd.Flags().Int("limit", 20, "number of revisions to show; 0 means all")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

func (r *remote) showHistory(cmd *cobra.Command, path string, limit int) error {
	var list []json.RawMessage
	err := r.call(cmd.Context(), func() (err error) {
		list, err = r.List(cmd.Context(), path, nil, limit)
		return err
	})
	if err != nil {
		return err
	}
	if r.format != formatTable {
		return r.write(list)
	}
	rows := [][]string{{"REVISION", "AT", "ACTOR", "REQUEST", "CHANGES"}}
	for _, raw := range list {
		var f map[string]json.RawMessage
		if err := json.Unmarshal(raw, &f); err != nil {
			return &runError{fmt.Errorf("reading %s: %w", path, err)}
		}
		rows = append(rows, []string{cell(f["revision"]), cell(f["at"]), shortCell(f["actor"]), shortCell(f["request"]), cell(f["changes"])})
	}
	return table(r.out, rows...)
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
		Revision           int64
		At, Actor, Request string
		Changes            []client.Change
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return &runError{fmt.Errorf("reading %s: %w", path, err)}
	}
	p := printer{w: r.out}
	p.line("revision %d at %s by %s: %s", f.Revision, client.Printable(f.At), client.Printable(f.Actor), client.Printable(f.Request))
	printChanges(&p, f.Changes)
	return p.outputError()
}
