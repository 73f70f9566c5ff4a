package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [PROXY]",
		Short: "Show what the Envoys have and what is not live",
		Long: `Shows the proxies and their Envoys, the revision that each has in full and how far
it is behind, what an Envoy refused and why, what it waits for, the upstreams that
fail, and the objects that are not live as written.`,
		Example: `  gatehouse status
  gatehouse status gw
  gatehouse status --context production -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := client.Path("status")
			if len(args) > 0 {
				path = client.Path("proxy", args[0], "status")
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			var object json.RawMessage
			err = r.call(cmd.Context(), func() (err error) {
				object, err = r.One(cmd.Context(), path)
				return err
			})
			if err != nil {
				return err
			}
			if r.format != formatTable {
				return r.write(object)
			}
			var s serverStatus
			if err := json.Unmarshal(object, &s); err != nil {
				return &runError{fmt.Errorf("reading the status: %w", err)}
			}
			return r.showStatus(s)
		},
	}
	return withFormat(withServer(named(cmd, "proxy")), "", formatTable, formatJSON, formatYAML)
}

// serverStatus is what GET /status shows.
type serverStatus struct {
	Replica  string
	Revision int64
	Built    int64 `json:"built_revision"`
	Held     string
	Proxies  []struct {
		Proxy  string
		Envoys []envoyStatus
	}
	Replicas     []struct{ Replica, State string }
	WaitingNodes []struct{ Node, Address, Version, Create, Identity string } `json:"waiting_nodes"`
	LimitsBy     string                                                      `json:"rate_limits"`
	Engines      []struct {
		Address, State string
		Refused        struct{ Message string }
	} `json:"ratelimit_engines"`
	Upstreams []struct {
		Object, Proxy, Cluster, Address, Health string
		Message                                 string `json:"health_message"`
	}
	MoreUpstreams int `json:"more_upstreams"`
	Conditions    []struct{ Path, Code, Message string }
}

type envoyStatus struct {
	Address, Version, State, Identity, Instance, Replica string
	Applied                                              int64 `json:"applied_revision"`
	Waiting                                              []struct {
		Object, Until string
		For           []struct{ Objects []string }
	}
	Refused []struct {
		Objects                 []string
		Message, Type, Resource string
	}
}

// showStatus writes a table of the Envoys, and one for each sort of trouble
// that there is.
func (r *remote) showStatus(s serverStatus) error {
	p := printer{w: r.out}
	p.line("%s: revision %d is stored, Envoys get revision %d", client.Printable(s.Replica), s.Revision, s.Built)
	if s.Held != "" {
		p.line("ENVOYS ARE HELD: %s", client.Printable(s.Held))
	}
	for _, o := range s.Replicas {
		p.line("replica %s: %s", client.Printable(o.Replica), client.Printable(o.State))
	}
	if s.LimitsBy != "" {
		p.line("rate limits: %s", client.Printable(s.LimitsBy))
	}
	envoys := [][]string{{"PROXY", "ENVOY", "VERSION", "APPLIED", "BEHIND", "STATE", "IDENTITY", "INSTANCE"}}
	refused, waiting := [][]string{{"REFUSED", "BY", "IN ENVOY'S WORDS"}}, [][]string{{"WAITING", "ENVOY", "FOR", "UNTIL"}}
	for _, proxy := range s.Proxies {
		if len(proxy.Envoys) == 0 {
			envoys = append(envoys, []string{proxy.Proxy, "", "", "", "", "no Envoy is connected"})
		}
		for _, e := range proxy.Envoys {
			if e.Replica != "" {
				e.Address += " at " + e.Replica
			}
			behind := strconv.FormatInt(max(0, s.Built-e.Applied), 10)
			envoys = append(envoys, []string{proxy.Proxy, e.Address, e.Version, strconv.FormatInt(e.Applied, 10), behind, e.State, e.Identity, e.Instance})
			for _, x := range e.Refused {
				refused = append(refused, []string{strings.Join(x.Objects, " "), e.Address, x.Message})
			}
			for _, w := range e.Waiting {
				var objects []string
				for _, f := range w.For {
					objects = append(objects, f.Objects...)
				}
				waiting = append(waiting, []string{w.Object, e.Address, strings.Join(objects, " "), w.Until})
			}
		}
	}
	for _, n := range s.WaitingNodes {
		envoys = append(envoys, []string{n.Node, n.Address, n.Version, "", "", "there is no such proxy; to create it: " + n.Create, n.Identity})
	}
	engines := [][]string{{"RATE-LIMIT ENGINE", "STATE", "BECAUSE"}}
	for _, e := range s.Engines {
		why := ""
		if e.State == "refused" {
			why = e.Refused.Message
		}
		engines = append(engines, []string{e.Address, e.State, why})
	}
	upstreams := [][]string{{"UPSTREAM", "ADDRESS", "PROXY", "IS", "BECAUSE"}}
	for _, u := range s.Upstreams {
		upstreams = append(upstreams, []string{cmp.Or(u.Object, "in cluster "+u.Cluster), u.Address, u.Proxy, u.Health, u.Message})
	}
	if s.MoreUpstreams > 0 {
		upstreams = append(upstreams, []string{fmt.Sprintf("and %d more", s.MoreUpstreams)})
	}
	conditions := [][]string{{"NOT LIVE AS WRITTEN", "WHY", ""}}
	for _, c := range s.Conditions {
		conditions = append(conditions, []string{c.Path, c.Code, c.Message})
	}
	if len(envoys) > 1 {
		r.section(&p, withoutEmptyColumn(envoys, 6))
	}
	for _, rows := range [][][]string{engines, refused, waiting, upstreams, conditions} {
		if len(rows) > 1 {
			r.section(&p, rows)
		}
	}
	return p.outputError()
}

// section writes a table behind an empty line.
func (r *remote) section(p *printer, rows [][]string) {
	p.line("")
	for _, row := range rows {
		for i := range row {
			row[i] = client.Printable(row[i])
		}
	}
	if p.err == nil {
		p.err = table(r.out, rows...)
	}
}

// withoutEmptyColumn leaves a last column out that has only its head.
func withoutEmptyColumn(rows [][]string, column int) [][]string {
	if slices.ContainsFunc(rows[1:], func(row []string) bool { return len(row) > column && row[column] != "" }) {
		return rows
	}
	for i, row := range rows {
		rows[i] = row[:min(column, len(row))]
	}
	return rows
}

// objectStatus is the block "status" of an object.
type objectStatus struct {
	Conditions []struct {
		Code, Message, Path string
		Status              bool
	}
	Lagging []struct{ Proxy, Envoy, Reason, Message string }
}

// showObjectStatus writes the conditions of an object, and where it lags.
func (r *remote) showObjectStatus(raw json.RawMessage) error {
	var s objectStatus
	if err := json.Unmarshal(raw, &s); err != nil {
		return &runError{fmt.Errorf("reading the status: %w", err)}
	}
	p := printer{w: r.out}
	rows := [][]string{{"CONDITION", "HOLDS", "MESSAGE"}}
	for _, c := range s.Conditions {
		message := c.Message
		if c.Path != "" {
			message += " (" + c.Path + ")"
		}
		rows = append(rows, []string{c.Code, map[bool]string{true: "yes", false: "no"}[c.Status], message})
	}
	r.section(&p, rows)
	if len(s.Lagging) > 0 {
		rows = [][]string{{"PROXY", "ENVOY", "LAGS", "BECAUSE"}}
		for _, l := range s.Lagging {
			rows = append(rows, []string{l.Proxy, l.Envoy, l.Reason, l.Message})
		}
		r.section(&p, rows)
	}
	return p.outputError()
}
