package main

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/dataplane"
)

func newEnvoy() *cobra.Command {
	cmd := withSettings(&cobra.Command{
		Use:   config.Envoy + " [-- ARGUMENT...]",
		Short: "Run an Envoy that is connected to a control plane elsewhere",
		Long: `Makes the bootstrap configuration that "gatehouse bootstrap" prints, checks the
files that it names, and runs Envoy with it: this process becomes the Envoy, with
its signals and its exit code. The configuration is kept in memory, so the file
system may be read-only. Arguments after -- are for Envoy.

Envoy stops immediately on SIGTERM and cuts running requests. With --drain-time, this
process stays and lets them finish first. With --geoip-country or --geoip-asn it stays
too, to follow the files.`,
		Example: `  gatehouse envoy --proxy gw --xds-addr control.example:18000 --xds-tls-ca ca.crt --xds-tls-cert gw.crt --xds-tls-key gw.key
  gatehouse envoy --proxy app --sidecar --drain-time 10s --xds-addr control.example:18000 --xds-tls-ca ca.crt --xds-token-file app.token
  gatehouse envoy --proxy gw -- --concurrency 2 --log-level debug`,
		RunE: runEnvoy,
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && cmd.ArgsLenAtDash() != 0 {
			return wrongArgument(fmt.Sprintf("unknown argument %q: arguments for Envoy follow --", args[0]))
		}
		return nil
	}
	return cmd
}

func runEnvoy(cmd *cobra.Command, args []string) error {
	cfg, warnings, err := load(cmd)
	if err != nil {
		return err
	}
	if err := dataplane.Check(cfg, time.Now()); err != nil {
		return err
	}
	p, err := dataplane.Params(cfg)
	if err != nil {
		return err
	}
	// Each start is another Envoy.
	p.Instance = cmp.Or(p.Instance, strings.ToLower(rand.Text()[:16]))
	for _, w := range append(warnings, plainTokenWarnings(cfg)...) {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "gatehouse: warning: "+w)
	}
	code, err := dataplane.Run(cmd.Context(), dataplane.RunOptions{
		Path: cfg.Envoy, Params: p, Args: args, Drain: cfg.Connect.DrainTime, Init: os.Getpid() == 1,
		CountryDatabase: cfg.GeoIPCountry, ASNDatabase: cfg.GeoIPASN, LogDir: cfg.AccessLogDir,
		Log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{ReplaceAttr: readableDuration})),
	})
	if err != nil {
		return &runError{err}
	}
	if code != 0 {
		return &exitStatus{code}
	}
	return nil
}

// exitStatus is the exit code of a program that said itself what is wrong.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("envoy ended with exit code %d", e.code) }
