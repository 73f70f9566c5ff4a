package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newDump() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Print the whole configuration as a document that apply reads",
		Long: `Prints the whole configuration as one document. Secrets are references without a
value. With --secrets sealed they are encrypted texts, which a Gatehouse with the
same key can open.`,
		Example: `  gatehouse dump > gateway.yaml
  gatehouse dump --tag team-a
  gatehouse dump --secrets sealed -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx := cmd.Context()
			var body io.ReadCloser
			err = r.call(ctx, func() (err error) {
				body, err = r.ReadConfig(ctx, client.ConfigQuery{Secrets: text(cmd, "secrets"), Tag: text(cmd, "tag"), JSON: r.format == formatJSON, NoRevision: isSet(cmd, "no-revision")})
				return err
			})
			if err != nil {
				return err
			}
			_, err = io.Copy(r.out, body)
			if closing := body.Close(); err == nil {
				err = closing
			}
			return asFailure(ctx, err)
		},
	}
	cmd.Flags().String("secrets", "", "how secrets are shown: references or sealed (default references)")
	cmd.Flags().Bool("no-revision", false, "leave out the revision, for a file that is kept and applied again and again")
	cmd.Flags().String("tag", "", "show only objects with this tag")
	complete(cmd, "secrets", cobra.FixedCompletions([]string{"references", "sealed"}, cobra.ShellCompDirectiveNoFileComp))
	return withFormat(withServer(cmd), formatYAML, formatYAML, formatJSON)
}
