package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete KIND/NAME",
		Short: "Delete an object, or what a document names",
		Long: `Deletes an object. An object that others use is not deleted: the answer names the
users; detach it from them first. A service is deleted with its routes. A proxy with
services or connected Envoys is deleted only with --force: its traffic stops at once.

With -f, deletes the objects that a configuration document names, all or none, in an order
that works; other objects stay. Objects that do not exist are skipped.`,
		Example: `  gatehouse delete upstream blue
  gatehouse delete route/shop/root
  gatehouse delete key/partners/mobile
  gatehouse delete proxy gw --force --dry-run
  gatehouse delete -f team-a.yaml --dry-run`,
		Args:              cobra.RangeArgs(0, 2),
		ValidArgsFunction: completeObject,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("file") {
				if len(args) > 0 {
					return errors.New("name objects or a document (-f), not both")
				}
				return applyDocument(cmd, true)
			}
			if len(args) == 0 {
				return argsError(cmd, args)
			}
			kind, name, path, err := namedPath(cmd, args)
			if err != nil {
				return err
			}
			query := url.Values{}
			switch {
			case isSet(cmd, "force") && kind.Name != "proxy":
				return fmt.Errorf("--force is for proxies; detach the %s from the objects that use it", kind.Name)
			case isSet(cmd, "force"):
				query.Set("force", "true")
			}
			if isSet(cmd, "dry-run") {
				query.Set("dry_run", "true")
			}
			return send(cmd, client.Request{Method: http.MethodDelete, Path: path, Query: query}, func(int) string {
				return kind.Name + " " + name + " is deleted"
			})
		},
	}
	cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	cmd.Flags().Bool("force", false, "delete a proxy although services are attached to it or Envoys are connected; with -f also what was changed after the revision that the document names")
	cmd.Flags().String("tag", "", "with -f: delete only if every object has this tag")
	withFiles(cmd)
	return withFormat(withServer(withWrite(cmd)), "", formatTable, formatJSON, formatYAML)
}

// namedObjects returns the objects that the arguments of cmd name, which are n.
func namedObjects(cmd *cobra.Command, args []string, n int) ([]string, error) {
	objects := client.SplitObjects(args)
	if len(objects) != n {
		return nil, fmt.Errorf("this names %s, not %d; usage: %s", plural(len(objects), "object", "objects"), n, cmd.UseLine())
	}
	return objects, nil
}

// namedObject returns the one object that the arguments name.
func namedObject(cmd *cobra.Command, args []string) (kind client.Kind, name string, err error) {
	objects, err := namedObjects(cmd, args, 1)
	if err != nil {
		return client.Kind{}, "", err
	}
	return client.ParseObject(objects[0])
}

// namedPath also returns its path in the API.
func namedPath(cmd *cobra.Command, args []string) (kind client.Kind, name, path string, err error) {
	if kind, name, err = namedObject(cmd, args); err == nil {
		path, err = kind.Path(name)
	}
	return kind, name, path, err
}

// send makes a write and reports it; words says what an answer of a status
// means.
func send(cmd *cobra.Command, req client.Request, words func(status int) string) error {
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := addWait(cmd, &req.Query); err != nil {
		return err
	}
	var answer client.Answer
	err = r.call(cmd.Context(), func() (err error) {
		answer, err = r.Do(cmd.Context(), req)
		return err
	})
	if err != nil {
		return err
	}
	if req.Query.Get("dry_run") != "" {
		return r.dryRun(answer)
	}
	if err := r.reportWrite(answer, words(statusOf(answer))); err != nil {
		return err
	}
	return checkLag(answer)
}
