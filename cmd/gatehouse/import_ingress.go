package main

import (
	"errors"
	"fmt"

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

Each annotation without an equivalent is named with its line, and the exit code is 1.
Where one decides who may send requests, the routes are closed (503) until they are
mended by hand: a host is never more open than it was.`,
		Example: `  kubectl get ingress -n shop -o yaml | gatehouse import ingress - > shop.yaml
  gatehouse import ingress ingresses.yaml --class nginx | kubectl apply --dry-run=server -f -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return importIngress(cmd, args[0]) },
	}
	cmd.Flags().String("class", "", "class of the Ingresses to translate (default: all)")
	cmd.Flags().String("proxy", "", "proxy of the hosts (default: the first one of the installation)")
	return cmd
}

func importIngress(cmd *cobra.Command, file string) error {
	in, err := openInput(cmd, file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	r, err := ingress.Import(in, ingress.Options{Class: text(cmd, "class"), Proxy: text(cmd, "proxy")})
	switch {
	case err != nil:
		return &runError{fmt.Errorf("reading %s: %w", file, err)}
	case len(r.Hosts) == 0:
		return &runError{errors.New("there is no Ingress to translate; --class selects by class")}
	}
	var notes []string
	differs := false
	for _, kind := range r.Skipped {
		notes = append(notes, "objects of the kind "+kind+" are left out")
	}
	for _, n := range r.Notes {
		notes, differs = append(notes, n.String()), differs || !n.Needless
	}
	return writeImported(cmd, notes, differs, r.Write)
}
