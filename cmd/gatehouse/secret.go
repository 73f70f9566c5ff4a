package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// maxSecretFile is the most that the API takes, in bytes.
const maxSecretFile = 1 << 20

func newSecret() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secret",
		Short: "Store certificates with their keys, and texts",
		Long: `Stores secrets. gatehouse get secrets lists them, gatehouse attach secret/NAME
service/SERVICE serves a certificate, and gatehouse delete secret NAME deletes one.`,
		Example: `  gatehouse secret set shop --cert fullchain.pem --key privkey.pem --wait
  gatehouse get secrets --expires-before 30d`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSecretSet())
	return cmd
}

func newSecretSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Create a secret, or replace its contents",
		Long: `Creates a secret, or replaces its contents. Give a certificate chain and its key to
serve a host or to present to upstreams, a certificate alone for an authority, or a
text. One call replaces certificate and key together, so they always match. Fields
that are not given keep their values: tags, the host name. A wrong pair is refused,
and the old pair stays served.`,
		Example: `  gatehouse secret set shop --cert fullchain.pem --key privkey.pem
  gatehouse secret set shop --cert fullchain.pem --key privkey.pem --sni shop.example.com --wait
  gatehouse secret set clients --cert authority.pem
  pass show oidc | gatehouse secret set oidc --value -`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSecret,
		RunE:              setSecret,
	}
	flags := cmd.Flags()
	flags.String("cert", "", "PEM file with the certificate chain, the certificate of the host first; - for standard input")
	flags.String("key", "", "PEM file with the private key, without a passphrase; - for standard input")
	flags.String("value", "", "file with a text; one line end at its end is removed; - for standard input")
	flags.String("sni", "", "the one host name to serve the certificate for (default: all names in it)")
	flags.StringSlice("tag", nil, "tags of the secret, in place of those that it has")
	cmd.MarkFlagsMutuallyExclusive("value", "cert")
	cmd.MarkFlagsMutuallyExclusive("value", "key")
	cmd.MarkFlagsMutuallyExclusive("value", "sni")
	cmd.MarkFlagsOneRequired("cert", "key", "value", "sni")
	for _, name := range []string{"cert", "key"} {
		complete(cmd, name, cobra.FixedCompletions([]string{"pem", "crt", "key"}, cobra.ShellCompDirectiveFilterFileExt))
	}
	complete(cmd, "sni", cobra.NoFileCompletions)
	complete(cmd, "tag", cobra.NoFileCompletions)
	return withFormat(withServer(withWrite(named(cmd, "secret"))), "", formatTable, formatJSON, formatYAML)
}

// completeSecret completes the name of a secret that is there.
func completeSecret(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	kind, err := client.FindKind("secret")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeName(cmd, kind, "", typed)
}

func setSecret(cmd *cobra.Command, args []string) error {
	kind, err := client.FindKind("secret")
	if err != nil {
		return err
	}
	path, err := kind.Path(args[0])
	if err != nil {
		return err
	}
	fields, err := secretFields(cmd)
	if err != nil {
		return err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	req := client.Request{Path: path, ContentType: "application/json", Body: body}
	if err := addWait(cmd, &req.Query); err != nil {
		return err
	}
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	answer, words, err := r.changeOrCreate(cmd, req)
	if err != nil {
		return err
	}
	if err := r.reportSecret(cmd, answer, "secret "+args[0]+" "+words, path); err != nil {
		return err
	}
	return checkLag(answer)
}

// changeOrCreate changes the object at the path of req, or creates it. Either is
// one transaction of the server.
func (r *remote) changeOrCreate(cmd *cobra.Command, req client.Request) (answer client.Answer, words string, err error) {
	err = r.call(cmd.Context(), func() (err error) {
		req.Method, words = http.MethodPatch, "is replaced"
		answer, err = r.Do(cmd.Context(), req)
		if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Status != http.StatusNotFound {
			return err
		}
		req.Method, words = http.MethodPut, "is created"
		req.Header = http.Header{"If-None-Match": {"*"}} // nobody else has created it meanwhile
		answer, err = r.Do(cmd.Context(), req)
		return err
	})
	return answer, words, err
}

// secretFields are the fields that the flags of cmd set.
func secretFields(cmd *cobra.Command) (map[string]any, error) {
	fields := map[string]any{}
	stdin := ""
	for _, flag := range []string{"cert", "key", "value"} {
		if !cmd.Flags().Changed(flag) {
			continue
		}
		path := text(cmd, flag)
		if path == "-" && stdin != "" {
			return nil, fmt.Errorf("--%s - and --%s - cannot both read standard input", stdin, flag)
		}
		if path == "-" {
			stdin = flag
		}
		content, err := readSecretFile(cmd.InOrStdin(), path)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		if flag == "value" {
			content = strings.TrimSuffix(strings.TrimSuffix(content, "\n"), "\r")
		}
		if strings.TrimSpace(content) == "" {
			return nil, fmt.Errorf("--%s: %s is empty", flag, fileWord(path))
		}
		fields["secret_"+flag] = content
	}
	if cmd.Flags().Changed("sni") {
		fields["secret_sni"] = text(cmd, "sni")
	}
	if cmd.Flags().Changed("tag") {
		tags, err := cmd.Flags().GetStringSlice("tag")
		if err != nil {
			return nil, err
		}
		fields["tags"] = tags
	}
	return fields, nil
}

func fileWord(path string) string {
	return map[bool]string{true: "standard input", false: path}[path == "-"]
}

// readSecretFile reads a file, or standard input for -.
func readSecretFile(stdin io.Reader, path string) (string, error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, maxSecretFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", fileWord(path), err)
	case len(content) > maxSecretFile:
		return "", fmt.Errorf("%s has more than 1 MiB; is it the right file?", fileWord(path))
	}
	return string(content), nil
}

// storedSecret is what the server shows of a secret.
type storedSecret struct {
	Name      string     `json:"secret_name"`
	Type      string     `json:"secret_type"`
	SNI       string     `json:"secret_sni"`
	HostNames []string   `json:"host_names"`
	Subject   string     `json:"subject"`
	Issuer    string     `json:"issuer"`
	NotAfter  *time.Time `json:"not_after"`
}

// names are what the secret is for, in words.
func (s storedSecret) names() string {
	if s.SNI != "" {
		return s.SNI
	}
	return cmp.Or(strings.Join(s.HostNames, ", "), s.Subject)
}

// ends says when the certificate ends.
func (s storedSecret) ends(now time.Time) string {
	if s.NotAfter == nil {
		return ""
	}
	return remaining(s.NotAfter.Sub(now)) + " (" + s.NotAfter.UTC().Format(time.DateOnly) + ")"
}

// remaining says how long something is still valid.
func remaining(left time.Duration) string {

	word := func(d time.Duration) string {
		switch {
		case d < time.Hour:
			return plural(int(d/time.Minute), "minute", "minutes")
		case d < day:
			return plural(int(d/time.Hour), "hour", "hours")
		}
		return plural(int(d/day), "day", "days")
	}
	if left < 0 {
		return "ended " + word(-left) + " ago"
	}
	return "in " + word(left)
}

// reportSecret reports what was stored: names, issuer, end and the services that use it.
func (r *remote) reportSecret(cmd *cobra.Command, answer client.Answer, words, path string) error {
	var stored json.RawMessage
	var users []string
	err := r.call(cmd.Context(), func() (err error) {
		if stored, err = r.One(cmd.Context(), path); err == nil {
			users, err = r.secretUsers(cmd, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the secret is stored; reading it: %w", err)
	}
	if r.format != formatTable {
		all := withRevision(answer)
		all["secret"], all["services"] = stored, users
		return r.write(all)
	}
	if err := r.reportWrite(answer, words); err != nil {
		return err
	}
	var s storedSecret
	if err := json.Unmarshal(stored, &s); err != nil {
		return &runError{fmt.Errorf("reading the secret: %w", err)}
	}
	var shown [][]string
	for _, row := range [][]string{
		{"  for", s.names()}, {"  issuer", s.Issuer}, {"  ends", s.ends(time.Now())}, {"  used by", strings.Join(users, ", ")},
	} {
		if row[1] != "" {
			shown = append(shown, []string{row[0], client.Printable(row[1])})
		}
	}
	if s.NotAfter != nil && len(users) == 0 {
		shown = append(shown, []string{"  used by", "no service yet: gatehouse attach secret/" + client.Printable(s.Name) + " service/SERVICE"})
	}
	return table(r.out, shown...)
}

// secretUsers names the services that a secret is attached to.
func (r *remote) secretUsers(cmd *cobra.Command, path string) ([]string, error) {
	list, err := r.List(cmd.Context(), path+client.Path("service"), nil, 0)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, raw := range list {
		var service struct {
			Name string `json:"service_name"`
		}
		if err := json.Unmarshal(raw, &service); err != nil {
			return nil, fmt.Errorf("reading the services of a secret: %w", err)
		}
		names[i] = service.Name
	}
	return names, nil
}

// showSecrets writes a table of secrets.
func (r *remote) showSecrets(cmd *cobra.Command, list []json.RawMessage) error {
	rows := [][]string{{"NAME", "TYPE", "FOR", "ENDS", "USED BY", "TAGS"}}
	now := time.Now()
	for _, raw := range list {
		var s storedSecret
		var tags struct{ Tags json.RawMessage }
		if err := errors.Join(json.Unmarshal(raw, &s), json.Unmarshal(raw, &tags)); err != nil {
			return &runError{fmt.Errorf("reading a secret: %w", err)}
		}
		var users []string
		err := r.call(cmd.Context(), func() (err error) {
			users, err = r.secretUsers(cmd, client.Path("secret", s.Name))
			return err
		})
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusNotFound {
			continue // deleted since
		}
		if err != nil {
			return err
		}
		row := []string{s.Name, s.Type, s.names(), s.ends(now), strings.Join(users, ", ")}
		for i, text := range row {
			row[i] = short(client.Printable(text))
		}
		rows = append(rows, append(row, shortCell(tags.Tags)))
	}
	return table(r.out, rows...)
}

// expiresBefore adds --expires-before to the query of a list.
func expiresBefore(cmd *cobra.Command, kind client.Kind, query url.Values, now time.Time) error {
	given := text(cmd, "expires-before")
	if given == "" {
		return nil
	}
	if kind.Name != "secret" {
		return fmt.Errorf("--expires-before is for secrets: %s do not expire", kind.Plural())
	}
	at, err := momentOf(given, now)
	if err != nil {
		return err
	}
	query.Set("expires_before", at.UTC().Format(time.RFC3339))
	return nil
}

// momentOf reads 30d, 12h, 2026-12-24 or 2026-12-24T12:00:00Z.
func momentOf(given string, now time.Time) (time.Time, error) {
	var days int
	if n, err := fmt.Sscanf(given, "%dd", &days); err == nil && n == 1 && fmt.Sprintf("%dd", days) == given && days >= 0 {
		return now.AddDate(0, 0, days), nil
	}
	if d, err := time.ParseDuration(given); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, given); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("--expires-before: %q is neither a time from now such as 30d or 12h nor a date such as 2026-12-24", given)
}
