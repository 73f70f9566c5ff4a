package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newContext() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Name servers, and select the current one",
		Long: `A context is a name for the address of a server, the file with its token and the
file with its certificate authority. Contexts are stored in
gatehouse/contexts.yaml in $XDG_CONFIG_HOME or ~/.config. A command
calls the server of the current context unless --context, --server or the
environment (GATEHOUSE_CONTEXT, GATEHOUSE_SERVER) names another.`,
		Example: `  gatehouse context set production --server https://gateway.example:1323 --token-file ~/.gatehouse-token
  gatehouse context use production
  gatehouse context list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newContextList(), newContextUse(), newContextSet(), newContextDelete())
	return cmd
}

func newContextList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "Show the contexts",
		Example: "  gatehouse context list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			contexts, err := client.ReadContexts(client.ContextsPath(os.Getenv))
			if err != nil {
				return err
			}
			r := &remote{out: cmd.OutOrStdout(), format: text(cmd, "output")}
			if r.format == formatTable || r.format == "" && onTerminal(r.out) {
				rows := [][]string{{"CURRENT", "NAME", "SERVER", "TOKEN_FILE", "CA_FILE"}}
				for _, c := range contexts.Contexts {
					mark := ""
					if c.Name == contexts.Current {
						mark = "*"
					}
					rows = append(rows, []string{mark, client.Printable(c.Name), client.Printable(c.Server), client.Printable(c.TokenFile), client.Printable(c.CAFile)})
				}
				return table(r.out, rows...)
			}
			list := []map[string]any{}
			for _, c := range contexts.Contexts {
				list = append(list, map[string]any{
					"name": c.Name, "server": c.Server, "token_file": c.TokenFile, "ca_file": c.CAFile, "current": c.Name == contexts.Current,
				})
			}
			return r.write(list)
		},
	}
	return withFormat(cmd, "", formatTable, formatJSON, formatYAML)
}

func newContextUse() *cobra.Command {
	return &cobra.Command{
		Use:               "use NAME",
		Short:             "Make a context the current one",
		Example:           "  gatehouse context use production",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, "context "+args[0]+" is the current one", func(c *client.Contexts) error {
				_, err := c.Find(args[0])
				c.Current = args[0]
				return err
			})
		},
	}
}

func newContextSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME --server URL",
		Short: "Create or change a context",
		Long: `Creates a context, or changes the settings that the flags give. The first context
becomes the current one.`,
		Example: `  gatehouse context set local --server http://127.0.0.1:1323
  gatehouse context set production --server https://gateway.example:1323 --token-file token
  gatehouse context set production --token-file ""   # remove the token`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return errors.New("a context needs a name")
			}
			return changeContexts(cmd, "context "+args[0]+" is set", func(c *client.Contexts) error {
				return setContext(cmd, c, args[0])
			})
		},
	}
	cmd.Flags().String("server", "", "address of the REST API, such as http://127.0.0.1:1323")
	cmd.Flags().String("token-file", "", "file that contains the token; empty means none")
	cmd.Flags().String("ca-file", "", "PEM file with the server's certificate authority; empty means those of the system")
	return cmd
}

func setContext(cmd *cobra.Command, c *client.Contexts, name string) error {
	x, err := c.Find(name)
	if err != nil {
		x = client.Context{Name: name}
	}
	if cmd.Flags().Changed("server") {
		x.Server = text(cmd, "server")
	}
	if x.Server == "" {
		return fmt.Errorf("context %q is new and needs --server URL", name)
	}
	if _, err := client.New(client.Options{Server: x.Server}); err != nil {
		return err
	}
	for flag, path := range map[string]*string{"token-file": &x.TokenFile, "ca-file": &x.CAFile} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		*path = text(cmd, flag)
		if *path == "" {
			continue
		}
		// The context is used from other directories too.
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	c.Set(x)
	if len(c.Contexts) == 1 {
		c.Current = name
	}
	return nil
}

func newContextDelete() *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Short:             "Delete a context",
		Long:              "Deletes a context. The server and the file of the token stay.",
		Example:           "  gatehouse context delete production",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeContext,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeContexts(cmd, "context "+args[0]+" is deleted", func(c *client.Contexts) error { return c.Delete(args[0]) })
		},
	}
}

// changeContexts changes the contexts file and says so.
func changeContexts(cmd *cobra.Command, words string, change func(*client.Contexts) error) error {
	path := client.ContextsPath(os.Getenv)
	contexts, err := client.ReadContexts(path)
	if err != nil {
		return err
	}
	if err := change(&contexts); err != nil {
		return err
	}
	if err := contexts.Write(path); err != nil {
		return &runError{err}
	}
	p := printer{w: cmd.OutOrStdout()}
	p.line("%s", client.Printable(words))
	return p.outputError()
}
