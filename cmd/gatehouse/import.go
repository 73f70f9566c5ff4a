package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/importer"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import",
		Short:   "Import the description of an API, users of htpasswd, objects of Kubernetes, Ingresses, or a file of Kong",
		Example: `  gatehouse import openapi petstore.yaml --service petstore --upstream pets --dry-run`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportOpenAPI(), newImportCRD(), newImportHtpasswd(), newImportIngress(), newImportKong())
	return cmd
}

func newImportOpenAPI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "openapi FILE|- --service NAME",
		Short: "Create a service and its routes from an OpenAPI 3 document",
		Long: `Creates or changes a service, so that it has a route for each operation of an
OpenAPI 3 document (YAML or JSON). A second import follows the changed document: it
deletes imported routes (tag ` + importer.Tag + `) that the document no longer has;
other routes stay. The upstreams must exist; without --upstream the first server of
the document becomes one, named like the service. One more route forwards OPTIONS,
which browsers send before a call.`,
		Example: `  gatehouse import openapi petstore.yaml --service petstore --proxy gw
  gatehouse import openapi petstore.yaml --service petstore --upstream pets --dry-run
  gatehouse import openapi petstore.yaml --service petstore --upstream pets --fqdn pets.example.com
  curl -s https://api.example/openapi.json | gatehouse import openapi - --service api --upstream blue`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return importOpenAPI(cmd, args[0]) },
	}
	cmd.Flags().String("service", "", "name of the service to create or change")
	cmd.Flags().StringArray("upstream", nil, "name of the upstream of all routes; may be repeated (default: a new one from the document's first server)")
	cmd.Flags().String("proxy", "", "name of the proxy to attach the service to")
	cmd.Flags().Bool("lenient", false, "skip what cannot be imported, with a warning")
	cmd.Flags().Bool("preflight", true, "create a route that forwards OPTIONS to the upstream")
	cmd.Flags().String("fqdn", "", "host of the service (default: unchanged; for a new service the host of the document's first server)")
	cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	_ = cmd.MarkFlagRequired("service") // it is there
	for _, name := range []string{"upstream", "proxy"} {
		complete(cmd, name, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			kind, err := client.FindKind(name)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeName(cmd, kind, "", typed)
		})
	}
	return withFormat(withServer(withMessage(cmd)), "", formatTable, formatJSON, formatYAML)
}

func importOpenAPI(cmd *cobra.Command, file string) error {
	upstreams, err := cmd.Flags().GetStringArray("upstream")
	if err != nil {
		return err
	}
	doc, err := readOpenAPI(cmd, file)
	if err != nil {
		return err
	}
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	job := importJob{remote: r, dryRun: isSet(cmd, "dry-run"), proxy: text(cmd, "proxy")}
	err = r.call(cmd.Context(), func() error {
		options := importer.Options{
			Service: text(cmd, "service"), FQDN: text(cmd, "fqdn"), Upstreams: upstreams, NoPreflight: !isSet(cmd, "preflight"),
		}
		stored, err := job.readStored(cmd.Context(), &options)
		if err != nil {
			return err
		}
		plan, err := importer.Import(doc, options, stored)
		if err != nil {
			return fmt.Errorf("importing %s: %w", file, withImportHint(cmd, err))
		}
		return job.run(cmd.Context(), options.Service, plan)
	})
	if err != nil {
		return err
	}
	return job.report()
}

// readOpenAPI says on a terminal that it works: a large document takes seconds.
func readOpenAPI(cmd *cobra.Command, file string) (*importer.Description, error) {
	data, err := readDescription(file, cmd.InOrStdin())
	if err != nil {
		return nil, &runError{fmt.Errorf("reading the OpenAPI document: %w", err)}
	}
	if onTerminal(cmd.ErrOrStderr()) {
		stop := progress(cmd.ErrOrStderr(), "reading "+client.Printable(file), time.Second)
		defer stop()
	}
	doc, err := importer.Read(cmd.Context(), data, isSet(cmd, "lenient"))
	if err != nil {
		return nil, &runError{fmt.Errorf("reading %s: %w", file, withImportHint(cmd, err))}
	}
	return doc, nil
}

// withImportHint adds how to import a document that has problems.
func withImportHint(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*importer.Error](err); ok && len(e.Problems) > 0 && !isSet(cmd, "lenient") {
		return fmt.Errorf("%w\nWith --lenient the rest is imported.", err) //nolint:revive,staticcheck // a line of its own
	}
	return err
}

func readDescription(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}

// importJob is one import and what it did.
type importJob struct {
	*remote
	dryRun bool
	// proxy is the name of the proxy to attach the service to; empty for none.
	proxy    string
	applied  client.Applied
	revision int64
}

// readStored reads what the server has; it must have the upstreams and the
// proxy. It tells o to make an upstream where none was named and none is there.
func (j *importJob) readStored(ctx context.Context, o *importer.Options) (importer.Stored, error) {
	var s importer.Stored
	if len(o.Upstreams) == 0 {
		_, err := j.One(ctx, client.Path("upstream", o.Service))
		if o.MakeUpstream = notFound(err); err != nil && !o.MakeUpstream {
			return s, err
		}
	}
	if j.proxy != "" {
		if _, err := j.One(ctx, client.Path("proxy", j.proxy)); notFound(err) {
			return s, fmt.Errorf("proxy %q does not exist; create it first (gatehouse get proxies lists the proxies)", j.proxy)
		} else if err != nil {
			return s, err
		}
	}
	for _, name := range o.Upstreams {
		if _, err := j.One(ctx, client.Path("upstream", name)); notFound(err) {
			return s, fmt.Errorf("upstream %q does not exist; create it first (gatehouse get upstreams lists the upstreams)", name)
		} else if err != nil {
			return s, err
		}
	}
	var err error
	if s.Service, err = j.One(ctx, client.Path("service", o.Service)); notFound(err) {
		return importer.Stored{}, nil
	} else if err != nil {
		return s, err
	}
	s.Routes, err = j.List(ctx, client.Path("service", o.Service, "route"), nil, 0)
	return s, err
}

func notFound(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusNotFound
}

// run carries out a plan: first what the document has, then it deletes what it
// has no more, so that no request finds neither.
func (j *importJob) run(ctx context.Context, service string, plan importer.Plan) error {
	var gone []client.Change
	for _, name := range plan.Gone {
		a, err := j.deleteRoute(ctx, service, name, true)
		if err != nil {
			return err
		}
		var data struct{ Changes []client.Change }
		if err := json.Unmarshal(a.Data, &data); err != nil {
			return fmt.Errorf("reading the answer to DELETE: %w", err)
		}
		gone = append(gone, data.Changes...)
	}
	applied, a, err := j.ApplyConfig(ctx, client.Document{Data: plan.Document}, client.Apply{DryRun: j.dryRun})
	if err != nil {
		return err
	}
	j.applied, j.revision = applied, a.Revision
	// Empty lists are lists in JSON too.
	j.applied.Warnings = append(append([]string{}, plan.Warnings...), applied.Warnings...)
	j.applied.Changes = append(append([]client.Change{}, applied.Changes...), gone...)
	j.applied.Deleted += len(gone)
	if err := j.attach(ctx, service); err != nil {
		return err
	}
	if j.dryRun {
		return nil
	}
	for _, name := range plan.Gone {
		a, err := j.deleteRoute(ctx, service, name, false)
		if err != nil && !notFound(err) {
			return fmt.Errorf("the routes of the document are in place, but some that it no longer has were not deleted; import it again: %w", err)
		}
		j.revision = max(j.revision, a.Revision)
	}
	return nil
}

// attach attaches the service to the proxy of the job, unless it is attached.
func (j *importJob) attach(ctx context.Context, service string) error {
	if j.proxy == "" {
		return nil
	}
	path := client.Path("proxy", j.proxy, "service", service)
	if _, err := j.One(ctx, path); err == nil || !notFound(err) {
		return err
	}
	j.applied.Created++
	j.applied.Changes = append(j.applied.Changes, client.Change{Action: "create", Path: path, Kind: "proxy_service", Fields: []client.Field{}})
	if j.dryRun {
		return nil
	}
	a, err := j.Do(ctx, client.Request{Method: http.MethodPost, Path: path})
	if err != nil {
		return fmt.Errorf("the service is in place, but not attached to the proxy; import it again: %w", err)
	}
	j.revision = max(j.revision, a.Revision)
	return nil
}

func (j *importJob) deleteRoute(ctx context.Context, service, name string, dryRun bool) (client.Answer, error) {
	q := url.Values{}
	if dryRun {
		q.Set("dry_run", "true")
	}
	return j.Do(ctx, client.Request{Method: http.MethodDelete, Path: client.Path("service", service, "route", name), Query: q})
}

func (j *importJob) report() error {
	if err := warn(j.remote, j.applied.Warnings); err != nil {
		return err
	}
	a := client.Answer{Revision: j.revision}
	if j.format == formatTable {
		p := printer{w: j.out}
		printChanges(&p, j.applied.Changes)
		p.line("%s", summary(j.applied, a, j.dryRun))
		return p.outputError()
	}
	all := struct {
		client.Applied
		DryRun   bool  `json:"dry_run,omitempty"`
		Revision int64 `json:"revision,omitempty"`
	}{j.applied, j.dryRun, j.revision}
	return j.write(all)
}
