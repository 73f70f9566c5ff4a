package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:   config.Token,
		Short: "Create, list and revoke tokens of the REST API and of the xDS port",
		Long: `Creates, lists and revokes tokens of the REST API; with --proxy, tokens with which the
Envoys of a proxy connect to the xDS port; with --ratelimit, tokens of the rate-limit
engine.

Calls the running server that --server, --context or the environment names, else
the one on this machine. With --data-dir or --database-url it uses that database
directly, with or without a server on it, and needs no token; a running server
sees the change immediately, or within a second for a token of the xDS port. It prints
on stderr which server or database it uses.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	addDatabaseFlags(cmd)
	cmd.AddCommand(newTokenCreate(), newTokenList(), newTokenRevoke())
	return cmd
}

// withOwner gives a command below token the flags that say whose tokens it is about.
func withOwner(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("proxy", "", "a token of the xDS port, for the Envoys of this proxy")
	cmd.Flags().Bool("ratelimit", false, "a token of the xDS port, for the rate-limit engine")
	cmd.MarkFlagsMutuallyExclusive("proxy", "ratelimit")
	complete(cmd, "proxy", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeObject(cmd, []string{"proxy"}, typed)
	})
	return cmd
}

func tokenOwner(cmd *cobra.Command) (app.TokenOwner, error) {
	owner := app.TokenOwner{Proxy: text(cmd, "proxy"), RateLimit: isSet(cmd, "ratelimit")}
	if cmd.Flags().Changed("proxy") && owner.Proxy == "" {
		return owner, errors.New("--proxy is empty: give the name of a proxy")
	}
	return owner, nil
}

func newTokenCreate() *cobra.Command {
	var made app.NewToken
	var withoutAdmin bool
	cmd := &cobra.Command{
		Use:   "create NAME --role admin|editor|viewer | --proxy PROXY | --ratelimit",
		Short: "Create a token and print it; it is never shown again",
		Long: `Creates a token and prints it; it is never shown again. Without any token the API
is open to everybody who reaches it; the first token with a role must be an admin's,
and closes the API. A token of a proxy or of the rate-limit engine has no role.

An editor is one of a team: it reads everything, and changes services, upstreams, filters,
secrets and key sets that have one of the tags of --tag. Its services may have only
hosts within --host, and open only ports of --port.`,
		Example: `  gatehouse token create ann --role admin > token
  gatehouse token create ci --role viewer --token-file token
  gatehouse token create bob --role editor --tag team-a --host '*.team-a.example' --token-file token
  gatehouse token create ann --role admin --data-dir /var/lib/gatehouse
  gatehouse token create edge-1 --proxy edge > edge-1.token`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			made.Name = args[0]
			owner, err := ownerOfNew(cmd, made.Role, withoutAdmin)
			if err != nil {
				return err
			}
			database, err := choosesDatabase(cmd)
			switch {
			case err != nil:
				return err
			case database:
				return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
					if !owner.API() {
						return app.CreateProxyToken(ctx, cfg, env, owner, args[0])
					}
					return app.CreateToken(ctx, cfg, env, made, withoutAdmin)
				})
			case withoutAdmin:
				return errors.New("--without-admin is for --data-dir and --database-url: a server knows whether it has --api-admin-token-file")
			}
			return createToken(cmd, owner, made)
		},
	}
	cmd.Flags().StringVar(&made.Role, "role", "", "admin: may do everything; editor: may change what is its team's; viewer: may read")
	cmd.Flags().StringSliceVar(&made.Tags, "tag", nil, "of an editor: a tag of the objects that it may change; several: --tag a --tag b")
	cmd.Flags().StringSliceVar(&made.Hosts, "host", nil, "of an editor: a host that its services may have: a name, *.SUFFIX or *; several: --host a --host b")
	cmd.Flags().IntSliceVar(&made.Ports, "port", nil, "of an editor: a port that its services of mode tcp, udp and tls may open; several: --port 5432 --port 5433")
	cmd.Flags().IntVar(&made.MaxObjects, "max-objects", 0, "of an editor: how many objects may have its tags, with their routes and keys; 0 means any number")
	cmd.Flags().BoolVar(&withoutAdmin, "without-admin", false, "in a database: create a token with another role although it has no admin's, because the server has --api-admin-token-file")
	complete(cmd, "role", cobra.FixedCompletions([]string{"admin", "editor", "viewer"}, cobra.ShellCompDirectiveNoFileComp))
	return withServer(withOwner(cmd))
}

// ownerOfNew returns whose the new token is: one of the API has a role, others have
// none.
func ownerOfNew(cmd *cobra.Command, role string, withoutAdmin bool) (app.TokenOwner, error) {
	owner, err := tokenOwner(cmd)
	switch {
	case err != nil:
		return owner, err
	case owner.API() && role == "":
		return owner, errors.New("specify --role admin, editor or viewer for a token of the REST API, or --proxy PROXY or --ratelimit for a token of the xDS port")
	case !owner.API() && firstChanged(cmd, "tag", "host", "port", "max-objects") != "":
		return owner, fmt.Errorf("--%s is for tokens of the REST API with --role editor", firstChanged(cmd, "tag", "host", "port", "max-objects"))
	case !owner.API() && (role != "" || withoutAdmin):
		return owner, errors.New("--role and --without-admin are for tokens of the REST API: a token of a proxy or of the rate-limit engine has no role")
	}
	return owner, nil
}

func newTokenList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens by name",
		Example: `  gatehouse token list --token-file token
  gatehouse token list --proxy edge -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			owner, err := tokenOwner(cmd)
			if err != nil {
				return err
			}
			database, err := choosesDatabase(cmd)
			switch {
			case err != nil:
				return err
			case !database:
				return listTokens(cmd, owner)
			}
			var list []app.ListedToken
			err = onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) (err error) {
				list, err = app.ListTokens(ctx, cfg, env, owner)
				return err
			})
			if err != nil {
				return err
			}
			return writeTokens(&remote{out: cmd.OutOrStdout(), format: outputFormat(cmd)}, owner, list)
		},
	}
	return withServer(withOwner(withFormat(cmd, "", formatTable, formatJSON, formatYAML)))
}

func newTokenRevoke() *cobra.Command {
	return withServer(withOwner(&cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Long: `Revokes a token. A server keeps the last admin's token; in a database it can be
revoked too, after which the API is open to this machine. An Envoy or engine
connected with a token of the xDS port loses the connection within about a second.`,
		Example: `  gatehouse token revoke ci --token-file token
  gatehouse token revoke ann --data-dir /var/lib/gatehouse
  gatehouse token revoke edge-1 --proxy edge`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeToken,
		RunE: func(cmd *cobra.Command, args []string) error {
			owner, err := tokenOwner(cmd)
			if err != nil {
				return err
			}
			database, err := choosesDatabase(cmd)
			switch {
			case err != nil:
				return err
			case database:
				return onDatabase(cmd, func(ctx context.Context, cfg config.Config, env app.Env) error {
					return app.RevokeToken(ctx, cfg, env, owner, args[0])
				})
			}
			return revokeToken(cmd, owner, args[0])
		},
	}))
}

// addDatabaseFlags gives the commands below cmd the settings of that name.
func addDatabaseFlags(cmd *cobra.Command) {
	for _, s := range config.Settings(cmd.Name()) {
		cmd.PersistentFlags().Var(&flagValue{text: s.Default, kind: s.Type}, s.Name, s.Usage)
	}
	cmd.PersistentFlags().Var(&flagValue{kind: "file"}, config.FileFlag, "YAML file with settings; its keys are the names of the flags")
}

// choosesDatabase says whether a command below token works on a database, and
// not on a server: where one of its settings names one. A flag wins over the
// environment and the file of settings.
func choosesDatabase(cmd *cobra.Command) (bool, error) {
	serverFlag := firstChanged(cmd, "server", "context", "token-file", "ca-file")
	databaseFlag := firstChanged(cmd, "data-dir", "database-url")
	switch {
	case serverFlag != "" && databaseFlag != "":
		return false, fmt.Errorf("--%s is for a server and --%s for a database: use one of them", serverFlag, databaseFlag)
	case databaseFlag != "":
		return true, nil
	case serverFlag != "":
		return false, nil
	}
	cfg, err := databaseSettings(cmd)
	if err != nil {
		return false, err
	}
	database := cfg.Explicit["data-dir"] || cfg.Explicit["database-url"]
	for _, name := range []string{"GATEHOUSE_SERVER", "GATEHOUSE_CONTEXT"} {
		if database && os.Getenv(name) != "" {
			return false, errors.New(name + " names a server, and the settings name a database: choose one with --server, or with --data-dir or --database-url")
		}
	}
	return database, nil
}

// firstChanged is the first of the flags that was given, or "".
func firstChanged(cmd *cobra.Command, names ...string) string {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// databaseSettings returns the settings of a command with addDatabaseFlags, or below
// one.
func databaseSettings(cmd *cobra.Command) (config.Config, error) {
	given := map[string]string{}
	// Those of the parent command are among them once the line is read.
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.LocalNonPersistentFlags().Lookup(f.Name) == nil {
			given[f.Name] = f.Value.String()
		}
	})
	name := cmd.Name()
	if len(config.Settings(name)) == 0 {
		name = cmd.Parent().Name()
	}
	cfg, _, err := config.Load(name, given, os.Environ(), os.ReadFile)
	return cfg, err
}

// onDatabase runs the work of a command with addDatabaseFlags, or below one.
func onDatabase(cmd *cobra.Command, work func(context.Context, config.Config, app.Env) error) error {
	cfg, err := databaseSettings(cmd)
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
