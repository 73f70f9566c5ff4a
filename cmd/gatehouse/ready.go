package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

func newReady() *cobra.Command {
	cmd := withSettings(&cobra.Command{
		Use:   config.Ready,
		Short: "Check whether the gateway with these settings is ready, for the health check of a container",
		Long: `Calls /ready of the gateway that runs with the same settings on this machine; with
--admin, and in a container that runs an Envoy alone, /ready of that Envoy. The exit code
is 0 if it is ready, and 1 if it is not, with the reason. It needs no token. It does
not know settings that are only on the command line of the gateway or Envoy: set them
in the environment or in a file.`,
		Example: `  gatehouse ready
  GATEHOUSE_API_ADDR=127.0.0.1:8001 gatehouse ready
  docker exec gatehouse gatehouse ready
  gatehouse ready --admin --admin-socket /run/envoy/admin.sock
  gatehouse ready --url http://gateway.example/ --any-status   # whether an Envoy answers at all`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd)
			if err != nil {
				return err
			}
			limit, err := cmd.Flags().GetDuration("timeout")
			if err != nil {
				return err
			}
			if url, err := cmd.Flags().GetString("url"); err != nil || url != "" {
				return askURL(cmd, url, limit)
			}
			ask := app.Ready
			if isSet(cmd, "admin") || app.RunsEnvoyAlone(os.DirFS("/proc")) {
				ask = app.EnvoyReady
			}
			if err := ask(cmd.Context(), cfg, limit); err != nil {
				return &runError{err}
			}
			return nil
		},
	})
	cmd.Flags().Bool("admin", false, "call the admin endpoint of an Envoy, not the REST API")
	cmd.Flags().String("url", "", "call this URL, which may be on another machine, until it answers 200")
	cmd.Flags().Bool("any-status", false, "with --url: accept an answer with any status")
	cmd.Flags().Duration("timeout", 4*time.Second, "how long to wait for the answer")
	return cmd
}

// askURL asks a URL until it answers as it should.
func askURL(cmd *cobra.Command, url string, limit time.Duration) error {
	anyStatus, err := cmd.Flags().GetBool("any-status")
	if err != nil {
		return err
	}
	if err := app.URLReady(cmd.Context(), url, anyStatus, limit); err != nil {
		return &runError{err}
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s answers\n", url)
	return err
}
