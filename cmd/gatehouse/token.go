package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-gateway/gatehouse/pkg/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   config.Token,
		Short: "Make, list and revoke tokens of the REST API, in the database",
		Long: `Works directly on the database that --database-url or --data-dir names, so it
needs no token. A running server sees the change at once.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range config.Settings(config.Token) {
		cmd.PersistentFlags().Var(&flagValue{text: s.Default, kind: s.Type}, s.Name, s.Usage)
	}
	cmd.PersistentFlags().Var(&flagValue{kind: "file"}, config.FileFlag, "YAML file with settings; its keys are the names of the flags")
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

func newTokenCreate() *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "create NAME --role admin|viewer",
		Short: "Make a token and print it, the only time that it is shown",
		Example: `  gatehouse token create ann --role admin > token
  gatehouse token create dashboard --role viewer --database-url postgres://gatehouse@db/gatehouse`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onTokens(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				return app.CreateToken(ctx, cfg, env, args[0], role)
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "admin: may do everything; viewer: may read")
	_ = cmd.MarkFlagRequired("role") // it is there
	return cmd
}

func newTokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without the tokens themselves",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return onTokens(cmd, app.ListTokens) },
	}
}

func newTokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onTokens(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				return app.RevokeToken(ctx, cfg, env, args[0])
			})
		},
	}
}

func onTokens(cmd *cobra.Command, work func(context.Context, config.Config, app.Env) error) error {
	given := map[string]string{}
	// Those of the parent command are among them once the line is read.
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.LocalNonPersistentFlags().Lookup(f.Name) == nil {
			given[f.Name] = f.Value.String()
		}
	})
	cfg, _, err := config.Load(config.Token, given, os.Environ(), os.ReadFile)
	if err != nil {
		return err
	}
	env := app.Env{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(), Log: slog.New(slog.DiscardHandler), Version: buildInfo().version}
	if err := work(cmd.Context(), cfg, env); err != nil {
		return &runError{err}
	}
	return nil
}
