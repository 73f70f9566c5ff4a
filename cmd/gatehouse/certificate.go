package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newCertificate() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "certificate",
		Short:   "List, renew and test the certificates that the gateway orders itself",
		Long:    "Shows the certificates that the gateway orders for services with Certificate=auto, renews them, and tests\nwhether they could be ordered.",
		Example: "  gatehouse certificate list\n  gatehouse certificate renew shop.example.com\n  gatehouse certificate test shop.example.com",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{
		Use:               "list",
		Short:             "List automatic certificates, and what the authority said",
		Long:              "Lists automatic certificates by host: their state, their end, and why one is missing.",
		Example:           "  gatehouse certificate list",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showOrdered(cmd, client.Request{Method: http.MethodGet, Path: client.Path("certificate")})
		},
	}
	renew := &cobra.Command{
		Use:   "renew HOST",
		Short: "Order a new certificate for a host now",
		Long: `Orders a new certificate for a host, also before the time of the next attempt. The
certificate that is there is served until then.`,
		Example:           "  gatehouse certificate renew shop.example.com",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return showOrdered(cmd, client.Request{Method: http.MethodPost, Path: client.Path("certificate", args[0], "renew")})
		},
	}
	for _, sub := range []*cobra.Command{list, renew, newCertificateTest()} {
		cmd.AddCommand(withFormat(withServer(sub), "", formatTable, formatJSON, formatYAML))
	}
	return cmd
}

// certificate is an element of GET /certificate.
type certificate struct {
	Host, Service, State, Reason, Advice string
	NotAfter                             string `json:"not_after"`
	Next                                 string
}

func showOrdered(cmd *cobra.Command, req client.Request) error {
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	var list []json.RawMessage
	err = r.call(cmd.Context(), func() error {
		answer, err := r.Do(cmd.Context(), req)
		if err == nil {
			list, err = answer.Elements()
		}
		return err
	})
	if err != nil {
		return err
	}
	if r.format != formatTable {
		return r.write(list)
	}
	rows := [][]string{{"HOST", "SERVICE", "STATE", "ENDS", "NEXT", "REASON"}}
	for _, raw := range list {
		var c certificate
		if err := json.Unmarshal(raw, &c); err != nil {
			return &runError{fmt.Errorf("reading a certificate: %w", err)}
		}
		why := c.Reason
		if c.Advice != "" {
			why += " -> " + c.Advice
		}
		row := []string{c.Host, c.Service, c.State, c.NotAfter, c.Next, strings.TrimSpace(why)}
		for i, cell := range row {
			row[i] = client.Printable(cell)
		}
		rows = append(rows, row)
	}
	return table(r.out, rows...)
}
