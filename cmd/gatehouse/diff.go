package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// errDifference ends the program with exit code 1 and no words.
var errDifference = errors.New("the configuration differs")

func newDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff -f FILE|DIR|-",
		Short: "Show what apply would change",
		Long: `Shows what "gatehouse apply" would create (+), change (~) and delete (-), value by
value, and changes nothing. With --exit-code it exits with 1 if something would change, and
with 2 if the comparison failed.`,
		Example: `  gatehouse diff -f gateway.yaml
  gatehouse diff -f conf.d --prune --exit-code > /dev/null && echo "nothing to do"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := diff(cmd)
			if failure, ok := errors.AsType[*runError](err); ok && isSet(cmd, "exit-code") {
				return failure.err // 1 is taken
			}
			return err
		},
	}
	withDocument(cmd)
	cmd.Flags().Bool("exit-code", false, "exit with 1 if something would change")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

func diff(cmd *cobra.Command) error {
	r, applied, a, err := sendDocument(cmd, true, false)
	if err != nil {
		return err
	}
	if r.format == formatTable {
		p := printer{w: r.out}
		printChanges(&p, applied.Changes)
		line := "no changes"
		if len(applied.Changes) > 0 {
			line = summary(applied, a, true)
		}
		p.line("%s", line)
		err = p.outputError()
	} else {
		err = r.write(a.Data)
	}
	if err == nil && isSet(cmd, "exit-code") && len(applied.Changes) > 0 {
		return errDifference
	}
	return err
}
