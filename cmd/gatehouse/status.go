package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/client"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the server and its Envoys are",
		Long: `Shows the connected Envoys, what each has applied, and what was refused. A server
that cannot tell is asked whether it is ready.`,
		Example: `  gatehouse status
  gatehouse status --context production -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			ctx, asksReady := cmd.Context(), false
			var answer client.Answer
			err = r.call(ctx, func() (err error) {
				answer, err = r.Do(ctx, client.Request{Method: http.MethodGet, Path: "/status"})
				if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusNotFound {
					asksReady = true
					answer, err = r.Do(ctx, client.Request{Method: http.MethodGet, Path: "/ready"})
				}
				return err
			})
			if err != nil {
				return err
			}
			if answer.Data == nil {
				answer.Data = answer.Body
			}
			if r.format != formatTable {
				return r.write(answer.Data)
			}
			p := printer{w: r.out}
			if asksReady {
				p.line("%s is ready; it has no /status to say more", r.Server())
				return p.done()
			}
			out, err := yaml.JSONToYAML(answer.Data)
			if err != nil {
				return &runError{fmt.Errorf("reading the status: %w", err)}
			}
			_, p.err = r.out.Write(out)
			return p.done()
		},
	}
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}
