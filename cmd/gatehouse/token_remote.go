package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// tokensPath is the path of the tokens of an owner.
func tokensPath(owner app.TokenOwner, name ...string) string {
	path := []string{"token"}
	switch {
	case owner.RateLimit:
		path = []string{"ratelimit", "token"}
	case owner.Proxy != "":
		path = []string{"proxy", owner.Proxy, "token"}
	}
	return client.Path(append(path, name...)...)
}

// createToken makes a token through the API of a server.
func createToken(cmd *cobra.Command, owner app.TokenOwner, t app.NewToken) error {
	fields := url.Values{"Token_name": {t.Name}}
	if owner.API() {
		fields.Set("Token_role", t.Role)
	}
	for name, list := range map[string][]string{"Token_tags": t.Tags, "Token_hosts": t.Hosts} {
		if len(list) > 0 {
			fields.Set(name, strings.Join(list, ","))
		}
	}
	if len(t.Ports) > 0 {
		fields.Set("Token_ports", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(t.Ports), "[]")), ","))
	}
	if t.MaxObjects != 0 {
		fields.Set("Token_max_objects", strconv.Itoa(t.MaxObjects))
	}
	r, answer, err := callTokens(cmd, client.Request{
		Method: http.MethodPost, Path: tokensPath(owner), ContentType: "application/x-www-form-urlencoded", Body: []byte(fields.Encode()),
	})
	if err != nil {
		return err
	}
	var made struct{ Token string }
	if err := json.Unmarshal(answer.Body, &made); err != nil || made.Token == "" {
		return &runError{errors.New("the answer has no token; does the server have another version? See gatehouse token list")}
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(made.Token))
	if err := p.outputError(); err != nil || r.HasToken() || !owner.API() {
		return err
	}
	p.w = r.errOut // nobody needed a token for this call
	p.line("its API was open until now; from now on every call needs a token: --token-file FILE, %s or a context", client.TokenFileVariable)
	return p.outputError()
}

func listTokens(cmd *cobra.Command, owner app.TokenOwner) error {
	r, answer, err := callTokens(cmd, client.Request{Method: http.MethodGet, Path: tokensPath(owner)})
	if err != nil {
		return err
	}
	list, err := readTokens(answer)
	if err != nil {
		return err
	}
	return writeTokens(r, owner, list)
}

func readTokens(answer client.Answer) (list []app.ListedToken, err error) {
	elements, err := answer.Elements()
	if err != nil {
		return nil, &runError{err}
	}
	for _, e := range elements {
		var t app.ListedToken
		if err := json.Unmarshal(e, &t); err != nil {
			return nil, &runError{fmt.Errorf("reading the list of tokens: %w", err)}
		}
		list = append(list, t)
	}
	return list, nil
}

// writeTokens writes a list in the format of r.
func writeTokens(r *remote, owner app.TokenOwner, list []app.ListedToken) error {
	if r.format != formatTable {
		return r.write(append([]app.ListedToken{}, list...)) // never null
	}
	heading := []string{"NAME", "ROLE", "TAGS", "CREATED", "LAST_USED"}
	if !owner.API() {
		heading = slices.Delete(heading, 1, 3)
	}
	rows := [][]string{heading}
	for _, t := range list {
		row := []string{client.Printable(t.Name)}
		if owner.API() {
			row = append(row, client.Printable(t.Role), client.Printable(cmp.Or(strings.Join(t.Tags, ","), "-")))
		}
		used := "never"
		if t.LastUsedTS != nil {
			used = t.LastUsedTS.UTC().Format(time.RFC3339)
		}
		rows = append(rows, append(row, t.CreateTS.UTC().Format(time.RFC3339), used))
	}
	return table(r.out, rows...)
}

func revokeToken(cmd *cobra.Command, owner app.TokenOwner, name string) error {
	r, _, err := callTokens(cmd, client.Request{Method: http.MethodDelete, Path: tokensPath(owner, name)})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("token %q", name)
	switch {
	case owner.RateLimit:
		what += " of the rate-limit engine"
	case owner.Proxy != "":
		what += fmt.Sprintf(" of proxy %q", owner.Proxy)
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(what+" is revoked"))
	return p.outputError()
}

// completeToken completes the name of a token that the server has.
func completeToken(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp
	owner, err := tokenOwner(cmd)
	if err != nil || len(args) > 0 {
		return nil, directive
	}
	r, err := connectWithin(cmd, completionTimeout)
	if err != nil {
		return nil, directive
	}
	defer r.Close()
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	answer, err := r.Do(ctx, client.Request{Method: http.MethodGet, Path: tokensPath(owner)})
	if err != nil {
		return nil, directive // there is no room for words in a completion
	}
	list, err := readTokens(answer)
	if err != nil {
		return nil, directive
	}
	var names []string
	for _, t := range list {
		if strings.HasPrefix(t.Name, typed) && len(names) < completionNames {
			names = append(names, client.Printable(t.Name))
		}
	}
	return names, directive
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
