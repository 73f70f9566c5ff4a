package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/ingress"
)

func newImportIngress() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ingress FILE|-",
		Short: "Write Ingresses of ingress-nginx as GatewayHosts",
		Long: `Reads Ingresses, as "kubectl get ingress -o yaml" prints them, and writes the
GatewayHosts and RouteFilters that "kubectl apply" reads, and the Certificates that
cert-manager makes for Ingresses only. It calls no server and no cluster.

Each annotation without an equivalent is named with its line. Where one decides who
may send requests, the routes are closed (503) until they are mended by hand: a host
is never more open than it was.`,
		Example: `  kubectl get ingress -n shop -o yaml | gatehouse import ingress - > shop.yaml
  gatehouse import ingress ingresses.yaml --class nginx --strict | kubectl apply --dry-run=server -f -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return importIngress(cmd, args[0]) },
	}
	cmd.Flags().String("class", "", "class of the Ingresses to translate (default: all)")
	cmd.Flags().String("proxy", "", "proxy of the hosts (default: the first one of the installation)")
	cmd.Flags().Bool("strict", false, "write nothing and fail if something has no equivalent")
	return cmd
}

func importIngress(cmd *cobra.Command, file string) error {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	return writeIngresses(cmd, file, in)
}

func writeIngresses(cmd *cobra.Command, file string, in io.Reader) error {
	r, err := ingress.Import(in, ingress.Options{Class: text(cmd, "class"), Proxy: text(cmd, "proxy")})
	if err != nil {
		return &runError{fmt.Errorf("reading %s: %w", file, err)}
	}
	var notes []string
	for _, kind := range r.Skipped {
		notes = append(notes, "objects of the kind "+kind+" are left out")
	}
	for _, n := range r.Notes {
		notes = append(notes, n.String())
	}
	if err := printEach(cmd.ErrOrStderr(), "warning: ", notes); err != nil {
		return err
	}
	switch {
	case len(r.Hosts) == 0:
		return &runError{fmt.Errorf("%s has no Ingress to translate", file)}
	case len(r.Notes) > 0 && isSet(cmd, "strict"):
		return &runError{errors.New("nothing was written, because of the warnings above (--strict)")}
	}
	return r.Write(cmd.OutOrStdout())
}
