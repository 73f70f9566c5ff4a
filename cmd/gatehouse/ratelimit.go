package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newRateLimit() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ratelimit",
		Short:   "Show the counts of rate limits",
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
		Long: `Shows the limits of a proxy (gw by default): the rate of each, its counts since the
start of the engine, the time until its window ends, and its routes; and the values
that were limited most in the last five minutes. With --every it repeats until
Ctrl-C, on a terminal in place. The counts of a stock engine need the setting
--ratelimit-metrics of the server.`,
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
	cmd.Flags().Duration("every", 0, "repeat at this interval, until Ctrl-C (default: once)")
	return withFormat(withServer(cmd), "", formatTable, formatJSON, formatYAML)
}

// topEvery shows path once, or again and again until ctx ends: on a terminal in
// place, elsewhere one below the other.
func (r *remote) topEvery(ctx context.Context, path string, every time.Duration) error {
	screen := r.out
	inPlace := every > 0 && r.format == formatTable && onTerminal(screen) && os.Getenv("TERM") != "dumb"
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
		// In one piece, so that nothing flickers.
		var frame bytes.Buffer
		r.out = &frame
		err = r.showTop(list)
		r.out = screen
		if err != nil {
			return err
		}
		text := frame.String()
		if inPlace {
			text = redraw(text)
		}
		p := printer{w: screen}
		p.line("%s", strings.TrimSuffix(text, "\n"))
		if p.err != nil || every <= 0 {
			return p.outputError()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		if !inPlace {
			(&printer{w: screen}).line("")
		}
	}
}

// redraw returns a text that replaces what the terminal shows.
func redraw(text string) string {
	const home, toEndOfLine, toEndOfScreen = "\x1b[H", "\x1b[K", "\x1b[J"
	return home + strings.ReplaceAll(text, "\n", toEndOfLine+"\n") + toEndOfScreen + "\n"
}

// rateLimitCounts is what GET /proxy/{proxy}/ratelimit shows.
type rateLimitCounts struct {
	Config  string `json:"globalconfig_name"`
	Domain  string
	Counted bool
	Note    string
	Limits  []rateLimitCount
	Top     []struct {
		Limit, Value string
		Shadow       bool
		Over         uint64
	}
	Engines []struct{ URL, Address, Error string }
}

type rateLimitCount struct {
	Limit, Unit              string
	PerUnit                  int64 `json:"requests_per_unit"`
	ResetsIn                 int64 `json:"resets_in"`
	Routes                   []string
	MoreRoutes               int `json:"more_routes"`
	With                     []string
	Hits, Near, Over, Shadow uint64
}

// columns returns the rate, the time left and the routes.
func (l rateLimitCount) columns() []string {
	rate, left, routes := "", "", strings.Join(l.Routes, ", ")
	if l.Unit != "" {
		rate = fmt.Sprintf("%d/%s", l.PerUnit, l.Unit)
	}
	if l.ResetsIn > 0 {
		left = timeLeft(l.ResetsIn)
	}
	if l.MoreRoutes > 0 {
		routes += fmt.Sprintf(" and %d more", l.MoreRoutes)
	}
	return []string{rate, left, routes}
}

// timeLeft writes seconds with the two largest units that they have.
func timeLeft(seconds int64) string {
	switch {
	case seconds >= 24*60*60:
		return fmt.Sprintf("%dd%dh", seconds/(24*60*60), seconds/(60*60)%24)
	case seconds >= 60*60:
		return fmt.Sprintf("%dh%dm", seconds/(60*60), seconds/60%60)
	case seconds >= 60:
		return fmt.Sprintf("%dm%ds", seconds/60, seconds%60)
	}
	return fmt.Sprintf("%ds", seconds)
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
		limits, about := [][]string{{"LIMIT", "RATE", "TIME LEFT", "ROUTES", "HITS", "NEAR", "OVER", "LET THROUGH"}}, map[string][]string{}
		for _, l := range c.Limits {
			of := strings.Join(append([]string{l.Limit}, l.With...), " + ")
			about[l.Limit] = l.columns()
			limits = append(limits, append(append([]string{of}, l.columns()...), decimal(l.Hits), decimal(l.Near), decimal(l.Over), decimal(l.Shadow)))
		}
		top := [][]string{{"LIMITED", "RATE", "TIME LEFT", "ROUTES", "OVER", "BY", ""}}
		for _, v := range c.Top {
			note := ""
			if v.Shadow {
				note = "let through"
			}
			row := append([]string{v.Value}, about[v.Limit]...)
			for len(row) < 4 {
				row = append(row, "")
			}
			top = append(top, append(row, decimal(v.Over), v.Limit, note))
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
	return p.outputError()
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
