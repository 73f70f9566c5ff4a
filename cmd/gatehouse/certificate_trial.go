package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// testEvery is the time between questions how a test goes on.
const testEvery = time.Second

func newCertificateTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test HOST",
		Short: "Test whether a certificate could be ordered for a host, and report what is wrong",
		Long: `Does everything that an order does at the authority's directory for tests, which is the
staging of Let's Encrypt unless test_directory of the globalconfig_acme names another,
and throws the certificate away: the one in use stays. Shows in the authority's own words
what fails, and what to do about it. The exit code is 1 if the test fails. Each host can
be tested five times in an hour.`,
		Example: `  gatehouse certificate test shop.example.com
  gatehouse certificate test shop.example.com --wait 30s -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			patience, err := cmd.Flags().GetDuration("wait")
			if err != nil {
				return err
			}
			return r.showCertificateTest(cmd.Context(), args[0], patience)
		},
	}
	cmd.Flags().Duration("wait", 10*time.Minute, "how long to wait for the end of the test, which continues")
	complete(cmd, "wait", cobra.NoFileCompletions)
	return cmd
}

// certificateTest is an answer of /certificate/{host}/test.
type certificateTest struct {
	Host, Service, State, Directory, Challenge, Issuer, Reason, Advice string
	NotAfter                                                           string `json:"not_after"`
}

func (r *remote) showCertificateTest(ctx context.Context, host string, patience time.Duration) error {
	end := time.NewTimer(patience)
	defer end.Stop()
	tick := time.NewTicker(testEvery)
	defer tick.Stop()
	method := http.MethodPost
	for {
		raw, test, err := r.askCertificateTest(ctx, client.Request{Method: method, Path: client.Path("certificate", host, "test")})
		if err != nil {
			return err
		}
		if test.State != "running" {
			return r.endCertificateTest(raw, test)
		}
		method = http.MethodGet
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			if err := r.writeCertificateTest(raw, test); err != nil {
				return err
			}
			return &runError{errors.New("the test still runs: ask again later with gatehouse certificate test")}
		case <-tick.C:
		}
	}
}

func (r *remote) askCertificateTest(ctx context.Context, req client.Request) (raw json.RawMessage, test certificateTest, err error) {
	if raw, err = r.askTest(ctx, req); err != nil {
		return nil, test, err
	}
	if err := json.Unmarshal(raw, &test); err != nil {
		return nil, test, &runError{fmt.Errorf("reading the test: %w", err)}
	}
	return raw, test, nil
}

func (r *remote) endCertificateTest(raw json.RawMessage, test certificateTest) error {
	if err := r.writeCertificateTest(raw, test); err != nil {
		return err
	}
	if test.State != "passed" {
		return &runError{fmt.Errorf("no certificate could be ordered for %s", client.Printable(test.Host))}
	}
	return nil
}

func (r *remote) writeCertificateTest(raw json.RawMessage, test certificateTest) error {
	if r.format != formatTable {
		return r.write(raw)
	}
	rows := [][]string{
		{"HOST", test.Host}, {"SERVICE", test.Service}, {"DIRECTORY", test.Directory}, {"CHALLENGE", test.Challenge}, {"STATE", test.State},
		{"ISSUER", test.Issuer}, {"ENDS", test.NotAfter}, {"REASON", test.Reason}, {"ADVICE", test.Advice},
	}
	var shown [][]string
	for _, row := range rows {
		if row[1] != "" {
			shown = append(shown, []string{row[0], client.Printable(row[1])})
		}
	}
	return table(r.out, shown...)
}
