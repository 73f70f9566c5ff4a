package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/envoy"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/dataplane"
)

func newBootstrap() *cobra.Command {
	return withSettings(&cobra.Command{
		Use:   config.Bootstrap,
		Short: "Print the configuration that connects an Envoy to the control plane",
		Long: `Prints the bootstrap configuration for an Envoy, which receives everything else
from the control plane at --xds-addr, under the name of --proxy. "gatehouse envoy"
starts an Envoy with it.`,
		Example: `  gatehouse bootstrap --proxy gw --xds-addr 127.0.0.1:18000 > envoy.yaml
  envoy -c envoy.yaml --disable-hot-restart
  gatehouse bootstrap --proxy gw --xds-addr gatehouse.example:18000 --xds-tls-ca ca.crt --xds-tls-cert gw.crt --xds-tls-key gw.key
  gatehouse bootstrap --proxy gw --xds-addr gatehouse.example:18000 --xds-tls-ca ca.crt --xds-token-file gw.token
  gatehouse bootstrap --proxy app --sidecar --max-heap 256MiB --max-connections 1000
  gatehouse bootstrap --proxy edge --admin-addr ""                       # no admin endpoint
  gatehouse bootstrap --proxy gw --admin-socket /run/envoy/admin.sock    # for this user only`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, warnings, err := load(cmd)
			if err != nil {
				return err
			}
			return printBootstrap(cfg, warnings, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	})
}

func printBootstrap(cfg config.Config, warnings []string, stdout, stderr io.Writer) error {
	p, err := dataplane.Params(cfg)
	if err != nil {
		return err
	}
	err = dataplane.Check(cfg, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		// The Envoy may be on another machine, with its files.
		warnings = append(warnings, err.Error()+"; it was not checked")
		err = nil
	}
	if err != nil {
		return err
	}
	if cfg.Connect.SDSDir != "" {
		if err := dataplane.WriteFollowed(&p, cfg.Connect.SDSDir); err != nil {
			return err
		}
	}
	out, err := envoy.Bootstrap(p)
	if err == nil && cfg.Connect.Format == "json" {
		out, err = dataplane.JSON(out)
	}
	if err != nil {
		return err
	}
	warnings = append(warnings, tokenWarnings(cfg, stdout)...)
	for _, w := range warnings {
		_, _ = fmt.Fprintln(stderr, "gatehouse: warning: "+w)
	}
	if _, err := stdout.Write(out); err != nil {
		return &runError{err}
	}
	return nil
}

// tokenWarnings says who may see the token.
func tokenWarnings(cfg config.Config, stdout io.Writer) []string {
	var list []string
	if cfg.Connect.TokenFile == "" {
		return list
	}
	if f, ok := stdout.(*os.File); ok && isTerminal(f) {
		list = append(list, "the bootstrap contains the token, and is shown on a terminal")
	}
	return append(list, plainTokenWarnings(cfg)...)
}

// plainTokenWarnings says that others on the network see the token.
func plainTokenWarnings(cfg config.Config) []string {
	host, _, _ := net.SplitHostPort(cfg.XDSAddr)
	ip, err := netip.ParseAddr(host)
	if cfg.Connect.TokenFile == "" || cfg.Connect.TLSCA != "" || host == "localhost" || err == nil && ip.IsLoopback() {
		return nil
	}
	return []string{fmt.Sprintf("the token is sent to %s unencrypted: whoever sees it can act as proxy %q; set --xds-tls-ca", cfg.XDSAddr, cfg.Proxy)}
}
