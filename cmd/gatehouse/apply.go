package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newApply() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "Apply a configuration document",
		Long: `Applies a configuration document as a whole or not at all. Objects that the
document does not name stay, unless --prune is given. The .yaml, .yml and .json
files of a directory, with -R also of its subdirectories, form one document; the
command names other files that it skips, except hidden ones. A document of "gatehouse
dump" names its revision: objects that were changed since are changed only with --force.`,
		Example: `  gatehouse apply -f gateway.yaml
  gatehouse apply -f conf.d --dry-run
  gatehouse apply -f gateway.yaml -m "more room for the sale"
  gatehouse dump --context old | gatehouse apply -f - --context new
  gatehouse apply -f team-a/ --tag team-a --prune   # deletes only objects with the tag`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return applyDocument(cmd, false)
		},
	}
	withDocument(cmd)
	withDryRun(cmd)
	return withFormat(withServer(withWrite(cmd)), "", formatTable, formatJSON, formatYAML)
}

// applyDocument applies the document that the flags name, or deletes what it names, and reports it.
func applyDocument(cmd *cobra.Command, deletes bool) error {
	r, applied, a, err := sendDocument(cmd, isSet(cmd, "dry-run"), deletes)
	if err != nil {
		return err
	}
	if r.format != formatTable {
		if err := r.write(withRevision(a)); err != nil {
			return err
		}
		return checkLag(a)
	}
	p := printer{w: r.out}
	printChanges(&p, applied.Changes)
	p.line("%s", summary(applied, a, isSet(cmd, "dry-run")))
	if err := p.outputError(); err != nil {
		return err
	}
	return checkLag(a)
}

// withDocument gives cmd the flags of a command that sends a document.
func withDocument(cmd *cobra.Command) {
	withFiles(cmd)
	cmd.Flags().Bool("prune", false, "delete the objects that the document does not name")
	cmd.Flags().Bool("force", false, "overwrite what was changed after the revision that the document names")
	cmd.Flags().String("tag", "", "apply only to objects with this tag")
}

// withFiles gives cmd the flags that name the files of a document.
func withFiles(cmd *cobra.Command) {
	cmd.Flags().StringArrayP("file", "f", nil, "file or directory to read, - for standard input; may be repeated")
	cmd.Flags().BoolP("recursive", "R", false, "include subdirectories")
	cmd.Flags().Bool("no-expand", false, "refuse values that read variables and files (!env, !file, !expand): for a document that you do not trust")
}

// readDocument reads the document that the flags name, and says what it skips.
func readDocument(cmd *cobra.Command) (client.Document, error) {
	files, err := cmd.Flags().GetStringArray("file")
	if err != nil {
		return client.Document{}, err
	}
	if len(files) == 0 {
		return client.Document{}, fmt.Errorf("name the document: %s -f FILE, -f DIRECTORY, or -f - for standard input", cmd.CommandPath())
	}
	from := client.Files{Paths: files, Recursive: isSet(cmd, "recursive")}
	if !isSet(cmd, "no-expand") {
		from.Env = os.LookupEnv
	}
	doc, err := client.ReadDocument(from, cmd.InOrStdin())
	if err != nil {
		return doc, &runError{err}
	}
	return doc, printEach(cmd.ErrOrStderr(), "", doc.Skipped)
}

// sendDocument sends the document that the flags name. Warnings go to the
// standard error.
func sendDocument(cmd *cobra.Command, dryRun, deletes bool) (*remote, client.Applied, client.Answer, error) {
	none := func(err error) (*remote, client.Applied, client.Answer, error) {
		return nil, client.Applied{}, client.Answer{}, err
	}
	wait, err := waitLimit(cmd)
	if err != nil {
		return none(err)
	}
	r, err := connect(cmd)
	if err != nil {
		return none(err)
	}
	defer r.Close()
	doc, err := readDocument(cmd)
	if err != nil {
		return none(err)
	}
	var applied client.Applied
	var answer client.Answer
	err = r.call(cmd.Context(), func() (err error) {
		applied, answer, err = r.ApplyConfig(cmd.Context(), doc, client.Apply{
			DryRun: dryRun, Delete: deletes, Force: isSet(cmd, "force"), Prune: isSet(cmd, "prune"), Tag: text(cmd, "tag"), Wait: wait,
		})
		return err
	})
	if err != nil {
		return none(err)
	}
	return r, applied, answer, warn(r, applied.Warnings)
}

func warn(r *remote, warnings []string) error { return printEach(r.errOut, "warning: ", warnings) }

func printEach(w io.Writer, prefix string, lines []string) error {
	p := printer{w: w}
	for _, line := range lines {
		p.line("%s%s", prefix, client.Printable(line))
	}
	return p.outputError()
}

func summary(d client.Applied, a client.Answer, dryRun bool) string {
	s := fmt.Sprintf("%d created, %d updated, %d deleted, %d unchanged", d.Created, d.Updated, d.Deleted, d.Unchanged)
	switch {
	case dryRun:
		return fmt.Sprintf("%d to create, %d to update, %d to delete, %d unchanged", d.Created, d.Updated, d.Deleted, d.Unchanged)
	case a.Revision > 0:
		s += fmt.Sprintf(" (revision %d)", a.Revision)
	}
	return s
}
