package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// wrongArgument is an error about arguments that says by itself what was meant.
type wrongArgument string

func (e wrongArgument) Error() string { return string(e) }

// explainUsage has cmd and the commands below it say what was probably meant by a wrong command
// line.
func explainUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(flagError)
	check := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		err := check(cmd, args)
		if _, plain := errors.AsType[wrongArgument](err); err == nil || plain {
			return err
		}
		return argsError(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		explainUsage(sub)
	}
}

// argsError says which arguments cmd takes.
func argsError(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	switch {
	case cmd.HasSubCommands():
		return commandError(cmd, args[0])
	case len(args) == 0:
		return fmt.Errorf("an argument is missing; usage: %s", cmd.UseLine())
	case cmd.Flags().Lookup("recursive") != nil && cmd.ValidArgsFunction == nil: // it reads documents only
		return fmt.Errorf("name files with -f: %s -f %s", path, strings.Join(args, " -f "))
	}
	return fmt.Errorf("wrong number of arguments, %d; usage: %s", len(args), cmd.UseLine())
}

// commandError says which command was probably meant by word.
func commandError(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if best, near := suggest.Nearest(word, names); near {
		return fmt.Errorf("%q is not a command; did you mean %s %s?", word, cmd.CommandPath(), best)
	}
	return fmt.Errorf("%q is not a command; %s --help lists the commands", word, cmd.CommandPath())
}

// flagError says which flag was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return err
	}
	name := unknown.GetSpecifiedName()
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if unknown.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("-%s is not a flag of %s; its --help lists the flags", name, cmd.CommandPath())
	}
	if best, near := suggest.Nearest(name, known); near {
		return fmt.Errorf("--%s is not a flag of %s; did you mean --%s?", name, cmd.CommandPath(), best)
	}
	return fmt.Errorf("--%s is not a flag of %s; its --help lists the flags", name, cmd.CommandPath())
}
