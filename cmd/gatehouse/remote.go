package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// The formats of -o.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// documentTimeout is how long a whole configuration may take to be applied.
const documentTimeout = 10 * time.Minute

func addClientCommands(root *cobra.Command) {
	root.AddGroup(&cobra.Group{ID: "client", Title: "Commands that call a running Gatehouse:"})
	for _, cmd := range []*cobra.Command{
		newApply(), newDiff(), newDump(), newGet(), newDescribe(), newCreate(), newSet(), newEdit(), newCopy(), newDelete(), newAttach(), newDetach(), newSecret(), newKey(), newLogin(), newCertificate(),
		newExport(), newImport(), newRollback(), newHistory(), newStatus(), newExplain(), newRateLimit(), newEvents(), newWatch(), newContext(),
	} {
		cmd.GroupID = "client"
		root.AddCommand(cmd)
	}
}

// withServer gives cmd the flags that choose the server.
func withServer(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.String("server", "", "address of the REST API (default: GATEHOUSE_SERVER, the current context, "+client.DefaultServer+")")
	flags.String("token-file", "", "file that contains the token (default: GATEHOUSE_TOKEN_FILE, the context's)")
	flags.String("ca-file", "", "PEM file with the certificate authority of an https server (default: GATEHOUSE_CA_FILE, the context's, the system's)")
	flags.String("context", "", "context to use (default: GATEHOUSE_CONTEXT, the current one)")
	timeout := client.DefaultTimeout
	if slices.Contains([]string{"apply", "diff", "openapi"}, cmd.Name()) {
		timeout = documentTimeout
	}
	flags.Duration("timeout", timeout, "how long to wait for the server's answer")
	cmd.MarkFlagsMutuallyExclusive("server", "context")
	complete(cmd, "context", completeContexts)
	return cmd
}

// withFormat gives cmd the flag -o. An empty standard means table on a
// terminal and json elsewhere.
func withFormat(cmd *cobra.Command, standard string, formats ...string) *cobra.Command {
	usage := "format of the output: " + strings.Join(formats, ", ")
	if standard == "" {
		usage += " (default: table on a terminal, else json)"
	}
	cmd.Flags().StringP("output", "o", standard, usage)
	complete(cmd, "output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if format := text(cmd, "output"); format != "" && !slices.Contains(formats, format) {
			return fmt.Errorf("--output: %q is not one of %s", format, strings.Join(formats, ", "))
		}
		return nil
	}
	return cmd
}

// text is the value of a text flag; "" for one that cmd does not have.
func text(cmd *cobra.Command, name string) string {
	f := cmd.Flags().Lookup(name)
	if f == nil {
		return ""
	}
	return f.Value.String()
}

func isSet(cmd *cobra.Command, name string) bool { return text(cmd, name) == "true" }

// remote is the server of one command, and where the command writes to.
type remote struct {
	*client.Client
	out, errOut io.Writer
	format      string
}

// connect finds the server; it calls nobody.
func connect(cmd *cobra.Command) (*remote, error) {
	timeout, err := cmd.Flags().GetDuration("timeout")
	if err != nil {
		return nil, err
	}
	wait, err := waitLimit(cmd)
	if err != nil {
		return nil, err
	}
	return connectWithin(cmd, timeout+wait)
}

func connectWithin(cmd *cobra.Command, timeout time.Duration) (*remote, error) {
	selection := client.Selection{Server: text(cmd, "server"), TokenFile: text(cmd, "token-file"), CAFile: text(cmd, "ca-file"), Context: text(cmd, "context")}
	contexts, err := client.ReadContexts(client.ContextsPath(os.Getenv))
	if err != nil {
		return nil, err
	}
	selection, err = client.Resolve(selection, os.Getenv, contexts)
	if err != nil {
		return nil, err
	}
	token, err := client.ReadToken(selection.TokenFile)
	if err != nil {
		return nil, err
	}
	authorities, err := client.ReadAuthorities(selection.CAFile)
	if err != nil {
		return nil, err
	}
	errOut := cmd.ErrOrStderr()
	c, err := client.New(client.Options{
		Server: selection.Server, Token: token, Authorities: authorities, Timeout: timeout, UserAgent: "gatehouse/" + buildInfo().version,
		Message: text(cmd, "message"),
		Warn:    func(text string) { (&printer{w: errOut}).line("warning: %s", client.Printable(text)) },
	})
	if err != nil {
		return nil, err
	}
	return &remote{Client: c, out: cmd.OutOrStdout(), errOut: errOut, format: outputFormat(cmd)}, nil
}

// outputFormat returns the format of the output: a table on a terminal and JSON otherwise, unless a flag says another.
func outputFormat(cmd *cobra.Command) string {
	switch chosen := text(cmd, "output"); {
	case chosen != "":
		return chosen
	case onTerminal(cmd.OutOrStdout()):
		return formatTable
	}
	return formatJSON
}

// call runs one or more calls, and says so on a terminal when they take long.
// Its error is a runError.
func (r *remote) call(ctx context.Context, work func() error) error {
	stop := func() {}
	if onTerminal(r.errOut) {
		stop = progress(r.errOut, "waiting for "+r.Server(), time.Second)
	}
	err := work()
	stop()
	return asFailure(ctx, err)
}

// asFailure turns err into a failure of the work. What ends a server in good order is a
// failure here.
func asFailure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = errors.New("interrupted before the answer came; the change may have been made anyway, see gatehouse history")
	}
	return &runError{err}
}

func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// printer writes lines and keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// outputError returns the error of the output, as a failure of the work.
func (p *printer) outputError() error {
	if p.err != nil {
		return &runError{fmt.Errorf("writing the output: %w", p.err)}
	}
	return nil
}
