package main

import (
	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration documents, for editors",
		Long: `Prints the JSON Schema (draft 2020-12) of configuration documents. An editor with a YAML
language server completes and checks documents with it: write
  # yaml-language-server: $schema=gateway.schema.json
in the first line of a document. It finds wrong keys and values; "gatehouse validate" also
compiles the document.`,
		Example: `  gatehouse schema > gateway.schema.json`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := document.Schema()
			if err != nil {
				return &runError{err}
			}
			p := printer{w: cmd.OutOrStdout()}
			p.line("%s", text)
			return p.outputError()
		},
	}
}
