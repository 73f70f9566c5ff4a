package main

import (
	"context"
	"errors"
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
	addDatabaseFlags(cmd)
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

// addDatabaseFlags gives the commands below cmd the settings of that name.
func addDatabaseFlags(cmd *cobra.Command) {
	for _, s := range config.Settings(cmd.Name()) {
		cmd.PersistentFlags().Var(&flagValue{text: s.Default, kind: s.Type}, s.Name, s.Usage)
	}
	cmd.PersistentFlags().Var(&flagValue{kind: "file"}, config.FileFlag, "YAML file with settings; its keys are the names of the flags")
}

func newTokenCreate() *cobra.Command {
	var role string
	var withoutAdmin bool
	cmd := &cobra.Command{
		Use:   "create NAME --role admin|viewer",
		Short: "Make a token and print it, the only time that it is shown",
		Example: `  gatehouse token create ann --role admin > token
  gatehouse token create dashboard --role viewer --database-url postgres://gatehouse@db/gatehouse`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				return app.CreateToken(ctx, cfg, env, args[0], role, withoutAdmin)
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "admin: may do everything; viewer: may read")
	cmd.Flags().BoolVar(&withoutAdmin, "without-admin", false, "make a viewer's token though no admin has one here: the server has --api-admin-token-file")
	_ = cmd.MarkFlagRequired("role") // it is there
	return cmd
}

func newTokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without the tokens themselves",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return onDatabase(cmd, app.ListTokens) },
	}
}

func newTokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
				return app.RevokeToken(ctx, cfg, env, args[0])
			})
		},
	}
}

// onDatabase runs the work of a command below one with addDatabaseFlags.
func onDatabase(cmd *cobra.Command, work func(context.Context, config.Config, app.Env) error) error {
	given := map[string]string{}
	// Those of the parent command are among them once the line is read.
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.LocalNonPersistentFlags().Lookup(f.Name) == nil {
			given[f.Name] = f.Value.String()
		}
	})
	cfg, _, err := config.Load(cmd.Parent().Name(), given, os.Environ(), os.ReadFile)
	if err != nil {
		return err
	}
	env := app.Env{Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(), Log: slog.New(slog.DiscardHandler), Version: buildInfo().version}
	err = work(cmd.Context(), cfg, env)
	switch {
	case err == nil:
		return nil
	case cmd.Context().Err() != nil && errors.Is(err, context.Canceled):
		// What ends a server in good order is a failure here.
		err = errors.New("interrupted before it was done; run it again")
	}
	return &runError{err}
}
