package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/client"
)

// createToken makes a token through the API of a server.
func createToken(cmd *cobra.Command, name, role string) error {
	r, answer, err := callTokens(cmd, client.Request{
		Method: http.MethodPost, Path: client.Path("token"), ContentType: "application/x-www-form-urlencoded",
		Body: []byte(url.Values{"Token_name": {name}, "Token_role": {role}}.Encode()),
	})
	if err != nil {
		return err
	}
	var made struct{ Token string }
	if err := json.Unmarshal(answer.Body, &made); err != nil || made.Token == "" {
		return &runError{errors.New("the answer has no token; is the server of another version? See gatehouse token list")}
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(made.Token))
	if err := p.outputError(); err != nil || r.HasToken() {
		return err
	}
	p.w = r.errOut // nobody needed a token for this call
	p.line("its API was open until now; from now on every call needs a token: --token-file FILE, %s or a context", client.TokenFileVariable)
	return p.outputError()
}

func listTokens(cmd *cobra.Command) error {
	r, answer, err := callTokens(cmd, client.Request{Method: http.MethodGet, Path: client.Path("token")})
	if err != nil {
		return err
	}
	elements, err := answer.Elements()
	if err != nil {
		return &runError{err}
	}
	rows := [][]string{{"NAME", "ROLE", "CREATED", "LAST_USED"}}
	for _, e := range elements {
		var t struct {
			Name, Role string
			CreateTS   time.Time  `json:"create_ts"`
			LastUsedTS *time.Time `json:"last_used_ts"`
		}
		if err := json.Unmarshal(e, &t); err != nil {
			return &runError{fmt.Errorf("reading the list of tokens: %w", err)}
		}
		used := "never"
		if t.LastUsedTS != nil {
			used = t.LastUsedTS.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{client.Printable(t.Name), client.Printable(t.Role), t.CreateTS.UTC().Format(time.RFC3339), used})
	}
	return table(r.out, rows...)
}

func revokeToken(cmd *cobra.Command, name string) error {
	r, _, err := callTokens(cmd, client.Request{Method: http.MethodDelete, Path: client.Path("token", name)})
	if err != nil {
		return err
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(fmt.Sprintf("token %q is revoked", name)))
	return p.outputError()
}

// callTokens makes one call and says which server it used.
func callTokens(cmd *cobra.Command, req client.Request) (*remote, client.Answer, error) {
	r, err := connect(cmd)
	if err != nil {
		return nil, client.Answer{}, err
	}
	defer r.Close()
	var answer client.Answer
	err = r.call(cmd.Context(), func() (err error) {
		answer, err = r.Do(cmd.Context(), req)
		return err
	})
	_, answered := errors.AsType[*client.Error](err)
	switch {
	case err == nil:
		p := printer{w: r.errOut}
		p.line("using the server %s", client.Printable(r.Server()))
		return r, answer, p.outputError()
	case !answered && cmd.Context().Err() == nil:
		err = &runError{fmt.Errorf("%w; if no server runs, name the database: --data-dir or --database-url", err)}
	}
	return nil, client.Answer{}, err
}
