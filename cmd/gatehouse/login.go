package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newLogin() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "login",
		Short:   "Test the login of a service",
		Long:    "Tests logins with an identity provider (OpenID Connect).",
		Example: `  gatehouse login test shop`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLoginTest())
	return cmd
}

func newLoginTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test SERVICE",
		Short: "Test the login of a service without a user, and report what is wrong",
		Long: `Tests the login of a service step by step, as far as possible without a user: the
identity provider's discovery document and keys, the configuration, the certificate that
cookies need, the gateway's answer without a session, whether the provider knows the
client and the address for the way back, and whether the client's secret is right.
The control plane makes the calls, only to the addresses that the login names. It sends
an invented code, so no login is used up. The exit code is 1 if a step fails.`,
		Example: `  gatehouse login test shop
  gatehouse login test shop --proxy gw --url https://shop.example.com/`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeService,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := url.Values{}
			for _, name := range []string{"proxy", "url"} {
				if value := text(cmd, name); value != "" {
					query.Set(name, value)
				}
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			return r.showLoginTest(cmd, client.Request{Method: http.MethodPost, Path: client.Path("service", args[0], "login", "test"), Query: query})
		},
	}
	cmd.Flags().String("proxy", "", "proxy to test it on (default: the one that the service is on)")
	cmd.Flags().String("url", "", "where users reach the service (default: https:// with its host and the HTTPS port of the proxy)")
	complete(cmd, "proxy", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completeObject(cmd, []string{"proxy"}, typed)
	})
	complete(cmd, "url", cobra.NoFileCompletions)
	return withFormat(withServer(named(cmd, "service")), "", formatTable, formatJSON, formatYAML)
}

// completeService completes the name of a service, and nothing behind it.
func completeService(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeObject(cmd, []string{"service"}, typed)
}

// loginTested is an answer of POST /service/{service}/login/test.
type loginTested struct {
	URL   string
	OK    bool
	Steps []struct{ Step, Result, Message, Advice string }
}

// askTest makes a call whose answer is one test.
func (r *remote) askTest(ctx context.Context, req client.Request) (raw json.RawMessage, err error) {
	err = r.call(ctx, func() error {
		answer, err := r.Do(ctx, req)
		if err != nil {
			return err
		}
		list, err := answer.Elements()
		if err == nil && len(list) != 1 {
			err = errors.New("the answer of the server has no test")
		}
		if err == nil {
			raw = list[0]
		}
		return err
	})
	return raw, err
}

func (r *remote) showLoginTest(cmd *cobra.Command, req client.Request) error {
	raw, err := r.askTest(cmd.Context(), req)
	if err != nil {
		return err
	}
	var t loginTested
	if err := json.Unmarshal(raw, &t); err != nil {
		return &runError{fmt.Errorf("reading the test: %w", err)}
	}
	if err := r.writeLoginTest(raw, t); err != nil {
		return err
	}
	if !t.OK {
		return &runError{errors.New("the login cannot work: see the steps that FAILED")}
	}
	return nil
}

func (r *remote) writeLoginTest(raw json.RawMessage, t loginTested) error {
	if r.format != formatTable {
		return r.write(raw)
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(t.URL))
	for _, s := range t.Steps {
		if s.Result == "failed" {
			s.Result = strings.ToUpper(s.Result)
		}
		p.line("%-8s %-14s %s", client.Printable(s.Result), client.Printable(s.Step), client.Printable(s.Message))
		if s.Advice != "" {
			p.line("%-8s %-14s -> %s", "", "", client.Printable(s.Advice))
		}
	}
	return p.outputError()
}
