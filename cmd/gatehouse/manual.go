package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManual returns the command that writes the manual pages of all commands, for packages.
func newManual(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIRECTORY",
		Short:  "Write the manual pages of all commands (man 1) into a directory",
		Long:   "Writes the manual pages. SOURCE_DATE_EPOCH, in seconds since 1970, is their date; the default is today.",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			date := time.Now()
			if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
				date = time.Unix(seconds, 0)
			}
			date = date.UTC()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Section: "1", Source: "Gatehouse " + version, Manual: "Gatehouse", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return &runError{err}
			}
			return nil
		},
	}
}
