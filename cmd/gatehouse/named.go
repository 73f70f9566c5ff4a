package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// named lets the first argument of cmd, which is the name of an object, be KIND/NAME or KIND NAME
// as well, as in the commands that take objects of any kind.
func named(cmd *cobra.Command, kind string) *cobra.Command {
	check, run := cmd.Args, cmd.RunE
	plain := func(cmd *cobra.Command, args []string) []string {
		if len(args) == 0 {
			return args
		}
		word, name, inOne := strings.Cut(args[0], "/")
		if k, err := client.FindKind(word); err != nil || k.Name != kind {
			return args
		}
		switch {
		case inOne:
			return slices.Concat([]string{name}, args[1:])
		case check(cmd, args) != nil && check(cmd, args[1:]) == nil: // otherwise the object itself is called proxy
			return args[1:]
		}
		return args
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, plain(cmd, args)) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, plain(cmd, args)) }
	return cmd
}
