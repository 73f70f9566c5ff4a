package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newRollback() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Restore the configuration of a revision",
		Long: `Restores the configuration of a revision, as a new revision, so that a rollback
can be rolled back too. "gatehouse history" lists the revisions.`,
		Example: `  gatehouse rollback 41 --dry-run
  gatehouse rollback 41`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			revision, err := revisionPath(args[0])
			if err != nil {
				return err
			}
			req := client.Request{Method: http.MethodPost, Path: revision + "/rollback"}
			if isSet(cmd, "dry-run") {
				req.Query = url.Values{"dry_run": {"true"}}
			}
			return send(cmd, req, func(int) string { return "the configuration is back at revision " + args[0] })
		},
	}
	cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	return withFormat(withServer(withWrite(cmd)), "", formatTable, formatJSON, formatYAML)
}

func revisionPath(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return "", fmt.Errorf("%q is not a revision: a whole number, see gatehouse history", text)
	}
	return client.Path("revision", strconv.FormatUint(n, 10)), nil
}
