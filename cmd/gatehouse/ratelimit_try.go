package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newRateLimitTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test PROXY URL",
		Short: "Show which limits a request would meet",
		Long: `Shows the descriptors that the Envoys of a proxy send to the rate-limit engine for a
request, and which rule each matches. Nothing is sent to an Envoy or counted.`,
		Example: `  gatehouse ratelimit test gw http://shop.example.com/cart --address 192.0.2.7
  gatehouse ratelimit test gw http://shop.example.com/login -X POST -H 'x-api-key: gold'`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeProxyFirst,
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := requestQuery(cmd, args[1])
			if err != nil {
				return err
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			return r.showRateLimitTest(cmd, client.Request{Method: http.MethodGet, Path: client.Path("proxy", args[0], "ratelimit", "test"), Query: query})
		},
	}
	return withFormat(withServer(withRequest(named(cmd, "proxy"))), "", formatTable, formatJSON, formatYAML)
}

// tried is an answer of GET /proxy/{proxy}/ratelimit/test.
type tried struct {
	Envoys      []string
	Message     string
	Descriptors []struct {
		Config  string `json:"globalconfig_name"`
		Domain  string
		Sent    bool
		Message string
		Entries []struct{ Key, Value string }
		Limit   *struct {
			Limit, Unit       string
			RequestsPerUnit   uint64 `json:"requests_per_unit"`
			Unlimited, Shadow bool
		}
	}
}

func (r *remote) showRateLimitTest(cmd *cobra.Command, req client.Request) error {
	var list []json.RawMessage
	err := r.call(cmd.Context(), func() error {
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
	p := printer{w: r.out}
	for i, raw := range list {
		var t tried
		if err := json.Unmarshal(raw, &t); err != nil {
			return &runError{fmt.Errorf("reading the rates: %w", err)}
		}
		if i > 0 {
			p.line("")
		}
		p.line("%s", client.Printable(t.Message))
		p.line("from: %s", client.Printable(basisText(t.Envoys)))
		if rows := t.rows(); len(rows) > 1 {
			r.section(&p, rows)
		}
	}
	return p.outputError()
}

func (t tried) rows() [][]string {
	rows := [][]string{{"DESCRIPTOR", "DOMAIN", "GLOBALCONFIG", "MEETS", "RATE"}}
	for _, d := range t.Descriptors {
		var parts []string
		for _, e := range d.Entries {
			parts = append(parts, e.Key+"="+e.Value)
		}
		row := []string{strings.Join(parts, " > "), d.Domain, d.Config, "nothing", ""}
		switch l := d.Limit; {
		case !d.Sent:
			row[0], row[3] = d.Message, "not sent"
		case l == nil:
		case l.Unlimited:
			row[3], row[4] = l.Limit, "no limit"
		default:
			row[3], row[4] = l.Limit, strconv.FormatUint(l.RequestsPerUnit, 10)+" each "+l.Unit
		}
		if d.Limit != nil && d.Limit.Shadow {
			row[4] += ", counted only"
		}
		rows = append(rows, row)
	}
	return rows
}
