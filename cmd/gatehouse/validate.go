package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIR|-",
		Short: "Check a configuration document without a server",
		Long: `Checks a configuration document as a server does before it stores it, without a server:
in an empty database in a temporary directory, which is removed. It calls nobody and reads no
settings. Each error has its file, line and column.

The document must contain all that its objects name: give more files with -f, or --partial for
the document of one team among several. A secret may be
a reference without contents, as "gatehouse dump" writes it, and contents that are sealed are
not opened. What the settings of a server forbid (addresses of upstreams, scripts) is not
known here: "gatehouse diff" asks the server. Exit code 1 means that there are errors.`,
		Example: `  gatehouse validate -f gateway.yaml
  gatehouse validate -f conf.d -R
  gatehouse validate -f shared.yaml -f team-a.yaml -o json
  gatehouse validate -f team-a.yaml --partial`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return validate(cmd) },
	}
	withFiles(cmd)
	cmd.Flags().Bool("partial", false, "the document is a part of a configuration: what it names and does not have is a warning")
	return withFormat(cmd, "", formatTable, formatJSON, formatYAML)
}

// found is one error or warning of a validation.
type found struct {
	client.Place
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

func validate(cmd *cobra.Command) error {
	doc, err := readDocument(cmd)
	if err != nil {
		return err
	}
	mediaType := ""
	if json.Valid(doc.Data) {
		mediaType = "application/json"
	}
	v, err := app.Validate(cmd.Context(), doc.Data, mediaType, isSet(cmd, "partial"))
	switch {
	case cmd.Context().Err() != nil: // what ends a server in good order is a failure here
		return &runError{errors.New("interrupted before the document was checked; run it again")}
	case err != nil:
		return &runError{fmt.Errorf("checking the document: %w", err)}
	}
	place := func(list []app.Finding) []found {
		all := make([]found, len(list))
		for i, f := range list {
			all[i] = found{doc.Locate(f.Line, f.Field), f.Field, doc.InFiles(f.Message)}
		}
		slices.SortStableFunc(all, func(a, b found) int { return client.ComparePlaces(a.Place, b.Place) })
		return all
	}
	r := remote{out: cmd.OutOrStdout(), errOut: cmd.ErrOrStderr(), format: outputFormat(cmd)}
	if err := r.reportValidation(v, place(v.Errors), place(v.Warnings)); err != nil {
		return err
	}
	if len(v.Errors) > 0 {
		return &exitStatus{exitFailure}
	}
	return nil
}

func (r *remote) reportValidation(v app.Validation, errs, warnings []found) error {
	if r.format != formatTable {
		return r.write(map[string]any{"valid": len(errs) == 0, "objects": v.Objects, "errors": errs, "warnings": warnings, "assumed": v.Assumed})
	}
	p := printer{w: r.out}
	line := func(f found, sort string) {
		text := f.Message
		if f.Field != "" {
			text = f.Field + ": " + text
		}
		p.line("%s: %s%s", client.Printable(f.String()), sort, client.Printable(text))
	}
	for _, f := range warnings {
		line(f, "warning: ")
	}
	for _, f := range errs {
		line(f, "")
	}
	if v.Assumed > 0 {
		p.line("%s not in the document, or sealed: taken for good", plural(v.Assumed, "object has contents that are", "objects have contents that are"))
	}
	if len(errs) > 0 {
		p.line("%s", plural(len(errs), "error", "errors"))
	} else {
		p.line("%s: valid", plural(v.Objects, "object", "objects"))
	}
	return p.outputError()
}
