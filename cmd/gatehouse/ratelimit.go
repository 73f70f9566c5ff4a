package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/client"
)

func newRateLimit() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ratelimit",
		Short:   "Show what rate limits count",
		Example: "  gatehouse ratelimit top\n  gatehouse ratelimit test gw http://shop.example.com/cart",
		Args:    cobra.NoArgs,
	}
	cmd.AddCommand(newRateLimitTop(), newRateLimitTest())
	return cmd
}

func newRateLimitTop() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top [PROXY]",
		Short: "Show who is limited",
		Long: `Shows the limits of a proxy (gw by default) with what they have counted since the
start of the engine, and the values that were limited most in the last five
minutes. With --every it goes on until Ctrl-C. What another engine than the one
of gatehouse standalone has counted is known with --ratelimit-metrics there.`,
		Example: `  gatehouse ratelimit top
  gatehouse ratelimit top gw --every 2s`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			proxy := "gw"
			if len(args) > 0 {
				proxy = args[0]
			}
			every, err := cmd.Flags().GetDuration("every")
			if err != nil {
				return err
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			return r.topEvery(cmd.Context(), client.Path("proxy", proxy, "ratelimit"), every)
		},
	}
	cmd.Flags().Duration("every", 0, "show it again after this time, until Ctrl-C (default: show it once)")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

// topEvery shows path once, or again and again until ctx ends.
func (r *remote) topEvery(ctx context.Context, path string, every time.Duration) error {
	for {
		var list []json.RawMessage
		err := r.call(ctx, func() error {
			answer, err := r.Do(ctx, client.Request{Method: http.MethodGet, Path: path})
			if err == nil {
				list, err = answer.Elements()
			}
			return err
		})
		switch {
		case err != nil && every > 0 && ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := r.showTop(list); err != nil || every <= 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
			(&printer{w: r.out}).line("")
		}
	}
}

// rateLimitCounts is what GET /proxy/{proxy}/ratelimit shows.
type rateLimitCounts struct {
	Config  string `json:"globalconfig_name"`
	Domain  string
	Counted bool
	Note    string
	Limits  []struct {
		Limit                    string
		With                     []string
		Hits, Near, Over, Shadow uint64
	}
	Top []struct {
		Limit, Value string
		Shadow       bool
		Over         uint64
	}
	Engines []struct{ URL, Address, Error string }
}

func (r *remote) showTop(list []json.RawMessage) error {
	if r.format != formatTable {
		return r.write(list)
	}
	p := printer{w: r.out}
	if len(list) == 0 {
		p.line("the proxy has no rate limits")
	}
	var c rateLimitCounts
	for _, raw := range list {
		c = rateLimitCounts{}
		if err := json.Unmarshal(raw, &c); err != nil {
			return &runError{fmt.Errorf("reading the rate limits: %w", err)}
		}
		p.line("%s: domain %s", client.Printable(c.Config), client.Printable(c.Domain))
		if !c.Counted {
			p.line("%s", client.Printable(c.Note))
			continue
		}
		limits := [][]string{{"LIMIT", "HITS", "NEAR", "OVER", "LET THROUGH"}}
		for _, l := range c.Limits {
			of := strings.Join(append([]string{l.Limit}, l.With...), " + ")
			limits = append(limits, []string{of, decimal(l.Hits), decimal(l.Near), decimal(l.Over), decimal(l.Shadow)})
		}
		top := [][]string{{"LIMITED", "OVER", "BY", ""}}
		for _, v := range c.Top {
			note := ""
			if v.Shadow {
				note = "let through"
			}
			top = append(top, []string{v.Value, decimal(v.Over), v.Limit, note})
		}
		r.section(&p, limits)
		if len(top) > 1 {
			r.section(&p, top)
		}
		if c.Note != "" {
			p.line("\n%s", client.Printable(c.Note))
		}
	}
	silent := [][]string{{"NOT IN THE NUMBERS", "ADDRESS", "BECAUSE"}}
	for _, e := range c.Engines {
		if e.Error != "" {
			silent = append(silent, []string{e.URL, e.Address, e.Error})
		}
	}
	if len(silent) > 1 {
		r.section(&p, silent)
	}
	return p.done()
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
