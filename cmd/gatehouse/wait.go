package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// defaultWait is how long --wait waits.
const defaultWait = 30 * time.Second

// withWrite gives cmd the flags of a write: it may say why it is made, and wait for the Envoys.
func withWrite(cmd *cobra.Command) *cobra.Command {
	withMessage(cmd)
	cmd.Flags().Bool("wait", false, "wait until every connected Envoy that the change reaches has it; exit code 3 if some do not in time")
	cmd.Flags().Duration("wait-timeout", defaultWait, "longest wait of --wait, up to 10m")
	if cmd.Flags().Lookup("dry-run") != nil {
		cmd.MarkFlagsMutuallyExclusive("wait", "dry-run")
	}
	return cmd
}

// withMessage gives cmd the flag that says why a revision is made.
func withMessage(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringP("message", "m", "", "why: one line for gatehouse history and the server's log")
	return cmd
}

// waitLimit is how long the answer to cmd may wait; 0 means not at all.
func waitLimit(cmd *cobra.Command) (time.Duration, error) {
	f := cmd.Flags().Lookup("wait-timeout")
	if f == nil {
		return 0, nil
	}
	limit, err := cmd.Flags().GetDuration("wait-timeout")
	switch {
	case err != nil:
		return 0, err
	case !isSet(cmd, "wait") && f.Changed:
		return 0, errors.New("--wait-timeout requires --wait")
	case !isSet(cmd, "wait"):
		return 0, nil
	case limit <= 0:
		return 0, fmt.Errorf("--wait-timeout: %s is not above 0", limit)
	}
	return limit, nil
}

// addWait adds to a query what the flags of cmd say.
func addWait(cmd *cobra.Command, query *url.Values) error {
	limit, err := waitLimit(cmd)
	if err != nil || limit == 0 {
		return err
	}
	if *query == nil {
		*query = url.Values{}
	}
	client.Wait(*query, limit)
	return nil
}

// lagError says that a change was made and is not live everywhere.
type lagError struct{ lags []client.Lag }

// Error has a line for each Envoy.
func (e *lagError) Error() string {
	var b strings.Builder
	b.WriteString("the change is stored, but was not live everywhere when the wait ended; gatehouse status shows what becomes of it")
	for _, l := range e.lags {
		b.WriteString("\n  proxy " + client.Printable(l.Proxy))
		if l.Envoy != "" {
			b.WriteString(", Envoy at " + client.Printable(l.Envoy))
		}
		b.WriteString(": " + client.Printable(l.Message) + " (" + client.Printable(l.Reason) + ")")
	}
	return b.String()
}

// checkLag returns an error if something lags after a write.
func checkLag(a client.Answer) error {
	if lags := a.Lagging(); len(lags) > 0 {
		return &lagError{lags}
	}
	return nil
}

// statusOf is the status that an answer has where nothing lags.
func statusOf(a client.Answer) int {
	if a.Status != http.StatusAccepted {
		return a.Status
	}
	var data map[string]json.RawMessage
	if json.Unmarshal(a.Data, &data) == nil { // else there is nothing to tell by
		for _, raw := range data {
			var rows struct {
				N *int `json:"affected_rows"`
			}
			if json.Unmarshal(raw, &rows) == nil && rows.N != nil && *rows.N == 0 {
				return http.StatusOK
			}
		}
	}
	return http.StatusCreated
}
