package main

import (
	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
)

func newBootstrap() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   config.Bootstrap,
		Short: "Print the configuration that connects an Envoy to the control plane",
		Long: `Prints the bootstrap configuration (YAML) for an Envoy, which receives everything
else from the control plane at --xds-addr, under the name of --proxy.`,
		Example: `  gatehouse bootstrap --proxy gw --xds-addr 127.0.0.1:18000 > envoy.yaml
  envoy -c envoy.yaml --disable-hot-restart
  gatehouse bootstrap --proxy edge --xds-addr gatehouse.example:18000 --admin-addr ""   # no admin endpoint
  gatehouse bootstrap --proxy gw --admin-socket /run/envoy/admin.sock                   # for this user only`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := load(cmd)
			if err != nil {
				return err
			}
			out, err := envoy.Bootstrap(envoy.Params{Node: cfg.Proxy, XDSAddr: cfg.XDSAddr, AdminAddr: cfg.AdminAddr, AdminSocket: cfg.AdminSocket})
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(out); err != nil {
				return &runError{err}
			}
			return nil
		},
	})
}
