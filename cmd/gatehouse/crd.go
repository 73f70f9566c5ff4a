package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func newExport() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "export",
		Short:   "Write the configuration in the form of another program",
		Example: `  gatehouse export crd --namespace shop > shop.yaml`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportCRD())
	return cmd
}

func newExportCRD() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd [FILE|DIR|-]...",
		Short: "Write the configuration as objects of Kubernetes",
		Long: `Writes the configuration of a running Gatehouse, or a configuration document, as
objects for "kubectl apply": GatewayHosts, RouteFilters and GlobalConfigs, Services
for the upstreams, and a ConfigMap with the proxies. "gatehouse import crd" reads
them back. What Kubernetes cannot carry is an error that names it, and nothing is
written.

The contents of secrets are left out, and comments at the top name the Secrets to
create. --secret-values writes them too, in the clear: for a running Gatehouse,
--secret-key-file is its key file, and the token must be an admin's.`,
		Example: `  gatehouse export crd --namespace shop | kubectl apply -f -
  gatehouse export crd gateway.yaml > objects.yaml
  gatehouse export crd --secret-values --secret-key-file secret.key | kubectl apply -f -`,
		RunE: exportCRD,
	}
	cmd.Flags().StringP("namespace", "n", "default", "namespace of the objects")
	cmd.Flags().Bool("secret-values", false, "write the contents of secrets, in the clear")
	cmd.Flags().StringSlice("upstream-allow", nil, "addresses that the cluster's control plane allows with its --upstream-allow")
	cmd.Flags().String("secret-key-file", "", "key file that opens sealed secrets, for --secret-values")
	return withServer(cmd)
}

func exportCRD(cmd *cobra.Command, files []string) error {
	values, keyFile := isSet(cmd, "secret-values"), text(cmd, "secret-key-file")
	if keyFile != "" && !values {
		return fmt.Errorf("--secret-key-file opens secrets that are written only with --secret-values: add it, or omit both")
	}
	if values && keyFile == "" && len(files) == 0 {
		return fmt.Errorf("--secret-values needs --secret-key-file FILE: a running Gatehouse shows its secrets only sealed")
	}
	allow, err := allowed(cmd)
	if err != nil {
		return err
	}
	data, err := readConfiguration(cmd, files, values)
	if err != nil {
		return err
	}
	doc, err := crd.Parse(data)
	if err != nil {
		return err
	}
	var open func(sealed, place string) (string, error)
	if keyFile != "" {
		ring, err := seal.Open(keyFile)
		if err != nil {
			return err
		}
		open = ring.Unseal
	}
	if !values || open != nil {
		if err := crd.Unseal(doc, open); err != nil {
			return fmt.Errorf("opening the secrets with %s: %w", keyFile, err)
		}
	}
	options := crd.ExportOptions{Namespace: text(cmd, "namespace"), Values: values, Allow: allow}
	objects, todo, err := crd.Export(doc, options)
	if err != nil {
		return err
	}
	if len(todo) > 0 {
		todo = append([]string{"Create these Secrets, whose contents are not written here:"}, todo...)
		warning := fmt.Sprintf("%d Secrets must be created; the comments at the top say how", len(todo)-1)
		if err := printEach(cmd.ErrOrStderr(), "warning: ", []string{warning}); err != nil {
			return err
		}
	}
	return crd.Write(cmd.OutOrStdout(), objects, todo)
}

// allowed reads --upstream-allow.
func allowed(cmd *cobra.Command) (list []egress.Entry, err error) {
	texts, err := cmd.Flags().GetStringSlice("upstream-allow")
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		entry, err := egress.ParseEntry(text)
		if err != nil {
			return nil, fmt.Errorf("--upstream-allow: %w", err)
		}
		list = append(list, entry)
	}
	return list, nil
}

// readConfiguration reads files, or asks the server.
func readConfiguration(cmd *cobra.Command, files []string, sealed bool) ([]byte, error) {
	if len(files) > 0 {
		doc, err := client.ReadDocument(client.Files{Paths: files}, cmd.InOrStdin())
		return doc.Data, err
	}
	r, err := connect(cmd)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	query := client.ConfigQuery{}
	if sealed {
		query.Secrets = "sealed"
	}
	var data []byte
	err = r.call(cmd.Context(), func() error {
		body, err := r.ReadConfig(cmd.Context(), query)
		if err != nil {
			return err
		}
		data, err = io.ReadAll(body)
		if closing := body.Close(); err == nil {
			err = closing
		}
		return err
	})
	return data, err
}

func newImportCRD() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "crd FILE|-...",
		Short: "Write objects of Kubernetes as a configuration document",
		Long: `Reads GatewayHosts, RouteFilters, GlobalConfigs and the Services, EndpointSlices,
Secrets and ConfigMaps that they lead to, as "kubectl get -o yaml" or "gatehouse
export crd" prints them, and writes the configuration document that
"gatehouse apply" reads. It calls no server.`,
		Example: `  gatehouse import crd objects.yaml > gateway.yaml
  kubectl get gatehouse,services,endpointslices,secrets,configmaps -n shop -o yaml | gatehouse import crd - | gatehouse apply -f -`,
		Args: cobra.MinimumNArgs(1),
		RunE: importCRD,
	}
	cmd.Flags().String("proxy", "gatehouse", "proxy of the objects that name none")
	cmd.Flags().Bool("secret-values", false, "write the contents of Secrets, in the clear")
	return cmd
}

func importCRD(cmd *cobra.Command, files []string) error {
	all := &crd.Objects{}
	var skipped []string
	for _, file := range files {
		others, err := readObjects(cmd, file, all)
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		skipped = append(skipped, others...)
	}
	if none := all.Foreign(skipped); none != "" {
		if len(all.Secrets) == 0 {
			return errors.New(none)
		}
		if err := printEach(cmd.ErrOrStderr(), "warning: ", []string{none}); err != nil {
			return err
		}
	}
	doc, warnings, err := crd.Import(all, crd.ImportOptions{Proxy: text(cmd, "proxy"), Values: isSet(cmd, "secret-values")})
	if err != nil {
		return err
	}
	if err := printEach(cmd.ErrOrStderr(), "warning: ", warnings); err != nil {
		return err
	}
	return crd.Encode(cmd.OutOrStdout(), doc)
}

// readObjects adds the objects of a file to others, and returns the kinds of those that it left out.
func readObjects(cmd *cobra.Command, file string, all *crd.Objects) (skipped []string, err error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, errors.New("it is a directory; name the files in it")
		}
		in = f
	}
	objects, skipped, err := crd.Read(in)
	if err != nil {
		return nil, err
	}
	all.Add(objects)
	warnings := make([]string, len(skipped))
	for i, kind := range skipped {
		warnings[i] = "objects of the kind " + kind + " are left out"
	}
	return skipped, printEach(cmd.ErrOrStderr(), "warning: ", warnings)
}
