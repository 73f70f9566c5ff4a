package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

const (
	day = 24 * time.Hour
	// Lifetimes in days. Renewal is one line of cron, so certificates are short-lived;
	// nothing renews an authority.
	authorityDays, certificateDays = 3650, 90
	// renewWithin is how many days before the end certificates are renewed.
	renewWithin = 30
	// maxDays keeps the year of a date below 10000, which is the last that a
	// certificate can have.
	maxDays = 100 * 365
)

func newPKI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pki",
		Short: "Make a small certificate authority for the xDS port, and its certificates",
		Long: `Makes a certificate authority in a directory, and certificates with which a control
plane, its Envoys and a rate-limit engine authenticate to each other. It calls no
server. Use it if you have no authority of your own.`,
		Example: `  gatehouse pki init pki
  gatehouse pki issue pki server --host gatehouse.example,10.0.0.1
  gatehouse pki issue pki proxy edge
  gatehouse serve --xds-addr 10.0.0.1:18000 --xds-tls-cert pki/server.crt --xds-tls-key pki/server.key \
    --xds-tls-client-ca pki/ca.crt --xds-tls-client-crl pki/ca.crl
  gatehouse pki renew pki            # every day: extends what ends within 30 days
  gatehouse pki revoke pki edge.crt
  gatehouse pki list pki`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPKIInit(), newPKIIssue(), newPKIRenew(), newPKIRevoke(), newPKIList(), newPKISecrets())
	return cmd
}

func newPKIInit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make an authority in a directory",
		Long: `Makes an authority: its certificate ca.crt, its key ca.key, and ca.crl, the list of
the certificates that it has revoked. The directory is created, if it does not exist, with mode
0700; files have mode 0600. Whoever has ca.key can act as any proxy: control planes
and Envoys need only ca.crt and, for revoked certificates, ca.crl.`,
		Example: `  gatehouse pki init pki
  gatehouse pki init /var/lib/gatehouse-pki --days 1825`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePKI(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			lifetime, err := days(cmd, "days")
			if err != nil {
				return err
			}
			made, err := pki.Create(args[0], time.Now(), lifetime)
			if err != nil {
				return &runError{err}
			}
			p := printer{w: cmd.OutOrStdout()}
			p.line("%s: authority, ends %s", filepath.Join(args[0], "ca.crt"), date(made.NotAfter))
			p.line("%s: its key; whoever has it can act as any proxy", filepath.Join(args[0], "ca.key"))
			p.line("%s: the certificates that it has revoked", filepath.Join(args[0], "ca.crl"))
			p.line("next: gatehouse pki issue %s server --host HOST", args[0])
			return p.outputError()
		},
	}
	addDays(cmd, "days", authorityDays, "how many days the authority is valid")
	return cmd
}

func newPKIIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue DIR server|proxy|ratelimit [NAME]",
		Short: "Issue a certificate for a control plane, the Envoys of a proxy or a rate-limit engine",
		Long: `Issues a certificate and writes it and its key into the directory: server.crt for
control planes, NAME.crt for the Envoys of the proxy NAME, and ratelimit.crt for the
rate-limit engine, each with its .key and with mode 0600. Existing files are kept
unless --force is given: that replaces certificate and key, and keeps the hosts of
a server if --host is not given. To extend a certificate with its key, use renew.`,
		Example: `  gatehouse pki issue pki server --host gatehouse.example --host 10.0.0.1
  gatehouse pki issue pki server --host cp2.example --file cp2   # one more, in cp2.crt
  gatehouse pki issue pki proxy edge
  gatehouse pki issue pki ratelimit --days 365
  gatehouse pki issue pki proxy edge --force                     # a new key, after the old one leaked`,
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: completePKI(completeIssue),
		RunE:              issueCertificate,
	}
	flags := cmd.Flags()
	flags.StringSlice("host", nil, "DNS name or IP address under which Envoys reach the server; repeat it or use commas")
	flags.String("file", "", "name of the files, without .crt and .key (default: server, the name of the proxy, or ratelimit)")
	flags.Bool("force", false, "replace existing files, key included")
	addDays(cmd, "days", certificateDays, "how many days the certificate is valid")
	complete(cmd, "host", cobra.NoFileCompletions)
	complete(cmd, "file", cobra.NoFileCompletions)
	return cmd
}

func issueCertificate(cmd *cobra.Command, args []string) error {
	hosts, err := cmd.Flags().GetStringSlice("host")
	if err != nil {
		return err
	}
	identity, err := pki.NewIdentity(args[1], append(args[2:], "")[0], hosts)
	if err != nil {
		return err
	}
	lifetime, err := days(cmd, "days")
	if err != nil {
		return err
	}
	req := pki.Request{Identity: identity, File: text(cmd, "file"), Replace: isSet(cmd, "force"), Lifetime: lifetime}
	if cmd.Flags().Changed("file") && req.File == "" {
		return errors.New("--file needs a name")
	}
	if err := req.Check(); err != nil {
		return err
	}
	return onAuthority(args[0], func(d *pki.Directory) error {
		made, err := d.Issue(req, time.Now())
		if err != nil {
			return err
		}
		p := printer{w: cmd.OutOrStdout()}
		p.line("%s, %s: %s, ends %s, serial %s", filepath.Join(args[0], made.File), filepath.Join(args[0], keyFile(made.File)), made.What, date(made.NotAfter), made.Serial)
		return p.outputError()
	})
}

func newPKIRenew() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "renew DIR [NAME.crt...]",
		Short: "Extend certificates",
		Long: `Issues certificates again, for the same names and with the same keys, so that only
the files NAME.crt are replaced: each in one step, so a program that reads it always
finds a pair. Without names it renews every certificate that expires within --within
days, except revoked certificates: run it every day. Running control planes read the
files again by themselves.`,
		Example: `  gatehouse pki renew pki
  gatehouse pki renew pki edge.crt --days 365
  @daily gatehouse pki renew /var/lib/gatehouse-pki   # in a crontab`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completePKI(completeCertificate),
		RunE:              renewCertificates,
	}
	addDays(cmd, "within", renewWithin, "without names: renew certificates that expire within this many days")
	addDays(cmd, "days", 0, "how many days the certificates are valid (default: as many as before)")
	return cmd
}

func renewCertificates(cmd *cobra.Command, args []string) error {
	within, err := days(cmd, "within")
	if err != nil {
		return err
	}
	lifetime := time.Duration(0)
	if cmd.Flags().Changed("days") {
		if lifetime, err = days(cmd, "days"); err != nil {
			return err
		}
	}
	if len(args) > 1 && cmd.Flags().Changed("within") {
		return errors.New("--within chooses from all certificates: leave out the names")
	}
	now := time.Now()
	return onAuthority(args[0], func(d *pki.Directory) error {
		p := printer{w: cmd.OutOrStdout()}
		files := args[1:]
		if len(files) == 0 {
			due, next, err := d.Due(now, now.Add(within))
			if err != nil {
				return err
			}
			for _, e := range due {
				files = append(files, e.File)
			}
			if len(due) == 0 && next != nil {
				p.line("nothing expires within %s; the first to expire is %s, on %s", plural(int(within/day), "day", "days"), filepath.Join(args[0], next.File), date(next.NotAfter))
			} else if len(due) == 0 {
				p.line("there is nothing to renew")
			}
		}
		var failed []error
		for _, file := range files {
			made, err := d.Renew(file, now, lifetime)
			if err != nil {
				failed = append(failed, err) // the others do not wait for it
				continue
			}
			p.line("%s: %s, ends %s, serial %s", filepath.Join(args[0], made.File), made.What, date(made.NotAfter), made.Serial)
		}
		return errors.Join(append(failed, p.outputError())...)
	})
}

func newPKIRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke DIR NAME.crt|SERIAL",
		Short: "Revoke certificates",
		Long: `Adds certificates to DIR/ca.crl. A control plane that reads it (--xds-tls-client-crl)
ends the streams of Envoys that use them within seconds. NAME.crt revokes it and every
other certificate that was issued for the same name; SERIAL revokes that one. Others
with the same key are revoked, too. It cannot be undone; issue --force makes a new
certificate with a new key.`,
		Example: `  gatehouse pki revoke pki edge.crt
  gatehouse pki revoke pki 5b0c4f6a8e1d2b3c4d5e6f708192a3b4`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completePKI(completeCertificate),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onAuthority(args[0], func(d *pki.Directory) error {
				revoked, err := d.Revoke(args[1], time.Now())
				if err != nil {
					return err
				}
				p := printer{w: cmd.OutOrStdout()}
				for _, e := range revoked {
					p.line("revoked: %s, serial %s", e.What, e.Serial)
				}
				if len(revoked) == 0 {
					p.line("nothing changed: it is already revoked, or has expired")
					return p.outputError()
				}
				p.line("%s has the list, for --xds-tls-client-crl", filepath.Join(args[0], "ca.crl"))
				return p.outputError()
			})
		},
	}
}

func newPKIList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list DIR",
		Short: "List the certificates of an authority",
		Long: `Lists the authority, and the certificates that have not expired or are in a file: what
each is for, its serial, its names, when it expires and whether it is revoked. A
certificate without a file was replaced by a later one, and is valid until it expires.`,
		Example:           "  gatehouse pki list pki\n  gatehouse pki list pki -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePKI(nil),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onAuthority(args[0], func(d *pki.Directory) error {
				list, err := d.List(time.Now())
				if err != nil {
					return err
				}
				return showCertificates(cmd, list)
			})
		},
	}
	return withFormat(cmd, "", formatTable, formatJSON, formatYAML)
}

// onAuthority runs work on the authority of a directory. Its errors are runErrors.
func onAuthority(dir string, work func(*pki.Directory) error) error {
	d, err := pki.Open(dir)
	if err != nil {
		return &runError{err}
	}
	defer d.Close()
	if err := work(d); err != nil {
		return &runError{err}
	}
	return nil
}

func addDays(cmd *cobra.Command, flag string, standard int, usage string) {
	cmd.Flags().Int(flag, standard, usage)
	complete(cmd, flag, cobra.NoFileCompletions)
}

// days reads a flag that is a number of days.
func days(cmd *cobra.Command, flag string) (time.Duration, error) {
	n, err := cmd.Flags().GetInt(flag)
	if err != nil {
		return 0, err
	}
	if n < 1 || n > maxDays {
		return 0, fmt.Errorf("--%s: %d is not between 1 and %d", flag, n, maxDays)
	}
	return time.Duration(n) * day, nil
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// completePKI completes a directory and, after it, what next completes.
func completePKI(next cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return nil, cobra.ShellCompDirectiveFilterDirs
		case next == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return next(cmd, args, typed)
	}
}

// completeIssue completes what a certificate is for, and the name of a proxy.
func completeIssue(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return pki.Purposes(), cobra.ShellCompDirectiveNoFileComp
	}
	kind, err := client.FindKind("proxy")
	if err != nil || len(args) != 2 || args[1] != string(pki.Proxy) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeName(cmd, kind, "", typed)
}

// completeCertificate completes a file of the directory.
func completeCertificate(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if cmd.Name() == "revoke" && len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	d, err := pki.Open(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer d.Close()
	list, err := d.List(time.Now())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var files []string
	for _, e := range list[1:] {
		if e.File != "" {
			files = append(files, e.File)
		}
	}
	return files, cobra.ShellCompDirectiveNoFileComp
}
