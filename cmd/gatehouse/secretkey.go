package main

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

func newSecretKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   config.SecretKey,
		Short: "Change the key that seals secrets",
		Long: `Uses the key file and the database that the flags name directly. Control planes
may run meanwhile; none needs a restart. If a command stops halfway, run it again.

If every control plane reads the same file, "rotate --remove-old" does
everything. If each has a copy: add, copy the file to all, rotate, copy it again,
remove-old, copy it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addDatabaseFlags(cmd)
	cmd.AddCommand(newSecretKeyAdd(), newSecretKeyRotate(), newSecretKeyRemoveOld())
	return cmd
}

func newSecretKeyAdd() *cobra.Command {
	return &cobra.Command{
		Use:   "add",
		Short: "Add a key for rotate to the key file, so that the file can be copied to other machines first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onDatabase(cmd, func(_ context.Context, cfg config.Config, env app.Env) error { return app.AddSecretKey(cfg, env) })
		},
	}
}

func newSecretKeyRotate() *cobra.Command {
	var removeOld bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Seal every secret, also in the history, with a new key or the added one",
		Example: `  gatehouse secret-key rotate --remove-old
  gatehouse secret-key rotate --database-url postgres://gatehouse@db/gatehouse --secret-key-file /etc/gatehouse/secret.key`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onDatabase(cmd, withSealNotice(func(ctx context.Context, cfg config.Config, env app.Env) error {
				return app.RotateSecretKey(ctx, cfg, env, removeOld)
			}))
		},
	}
	cmd.Flags().BoolVar(&removeOld, "remove-old", false, "remove the old keys afterwards; every control plane must read this same file")
	return cmd
}

func newSecretKeyRemoveOld() *cobra.Command {
	return &cobra.Command{
		Use:   "remove-old",
		Short: "Seal the remaining secrets with the new key, and remove the old keys from the key file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onDatabase(cmd, withSealNotice(app.RemoveOldSecretKeys))
		},
	}
}

// withSealNotice prints on a terminal that work may take long.
func withSealNotice(work func(context.Context, config.Config, app.Env) error) func(context.Context, config.Config, app.Env) error {
	return func(ctx context.Context, cfg config.Config, env app.Env) error {
		if !onTerminal(env.Stderr) {
			return work(ctx, cfg, env)
		}
		var result bytes.Buffer // for when the line of progress is gone
		out := env.Stdout
		env.Stdout = &result
		stop := progress(env.Stderr, "sealing the secrets again", time.Second)
		err := work(ctx, cfg, env)
		stop()
		_, writeErr := out.Write(result.Bytes())
		return errors.Join(err, writeErr)
	}
}
