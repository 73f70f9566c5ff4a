package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newImportHtpasswd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "htpasswd FILE|- --filter NAME",
		Short: "Give a filter the users of a file of htpasswd (Apache)",
		Long: `Creates or changes an http_filter_basicauth, so that its users are
those of the file, with the hashes of their passwords. Envoy verifies SHA-1 only
(htpasswd -s). A line with bcrypt, apr1 or crypt is refused by its number, and with it
the file, unless --lenient is given: give these users new passwords.

With --consumers each user is also a credential of the consumer with the user's name,
which is created if it does not exist.`,
		Example: `  gatehouse import htpasswd users.htpasswd --filter staff --dry-run
  gatehouse import htpasswd users.htpasswd --filter staff --consumers`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return importHtpasswd(cmd, args[0]) },
	}
	cmd.Flags().String("filter", "", "name of the filter to create or change")
	cmd.Flags().Bool("consumers", false, "make each user a credential of the consumer of the same name")
	cmd.Flags().Bool("lenient", false, "skip what cannot be imported, with a warning")
	cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	_ = cmd.MarkFlagRequired("filter") // it is there
	return withFormat(withServer(withMessage(cmd)), "", formatTable, formatJSON, formatYAML)
}

func importHtpasswd(cmd *cobra.Command, file string) error {
	users, skipped, err := readHtpasswd(cmd, file)
	if err != nil {
		return &runError{fmt.Errorf("reading %s: %w", file, withImportHint(cmd, err))}
	}
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	job := importJob{remote: r, dryRun: isSet(cmd, "dry-run")}
	err = r.call(cmd.Context(), func() error {
		options := importer.UserOptions{Filter: text(cmd, "filter"), Consumers: isSet(cmd, "consumers")}
		stored, err := job.readUsers(cmd.Context(), options.Filter, options.Consumers)
		if err != nil {
			return err
		}
		data, err := importer.ImportUsers(users, options, stored)
		if err != nil {
			return err
		}
		return job.run(cmd.Context(), "", importer.Plan{Document: data, Warnings: skipped})
	})
	if err != nil {
		return err
	}
	return job.report()
}

// readHtpasswd returns the users, and what was skipped.
func readHtpasswd(cmd *cobra.Command, file string) ([]importer.HashedUser, []string, error) {
	in, err := openInput(cmd, file)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(in, importer.MaxHtpasswd+1))
	if err != nil {
		return nil, nil, err
	}
	users, err := importer.ReadHtpasswd(data)
	e, is := errors.AsType[*importer.Error](err)
	if !is || !isSet(cmd, "lenient") || len(users) == 0 {
		return users, nil, err
	}
	var skipped []string
	for _, p := range e.Problems {
		skipped = append(skipped, p.String())
	}
	return users, skipped, nil
}

// readUsers reads what the server has of the filter and, if want says so, of consumers.
func (j *importJob) readUsers(ctx context.Context, filter string, want bool) (s importer.StoredUsers, err error) {
	if s.Filter, err = j.One(ctx, client.Path("filter", filter)); err != nil && !notFound(err) {
		return s, err
	}
	if want {
		s.Consumers, err = j.List(ctx, client.Path("consumer"), nil, 0)
		return s, err
	}
	return s, nil
}
