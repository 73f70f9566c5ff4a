package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// fieldsHelp says how the fields of an object are written.
const fieldsHelp = `
A field has the name of the API (Upstream_weight) or the short one, without the kind
(weight), in any letter case. FIELD.KEY=VALUE sets a key inside a configuration, which
may be JSON or YAML. FIELD=@FILE and FIELD=- read a file and standard input; one line
end at the end is removed. FIELD= resets a field to its default, FIELD.KEY= removes a key.
A text that begins with @ is written with @@.`

func newCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create KIND/NAME FIELD=VALUE...",
		Short: "Create an object",
		Long: `Creates an object; one that exists is not changed.
` + fieldsHelp,
		Example: `  gatehouse create upstream web ip=10.0.0.1 port=8080
  gatehouse create service shop fqdn=shop.example.com
  gatehouse create route shop/root prefix=/ config.timeouts.request=5s
  gatehouse create filter limit type=ratelimit config=@limit.yaml
  gatehouse create key partners/mobile description="the phone app"`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeNewObject,
		RunE:              create,
	}
	return withFormat(withServer(withWrite(withDryRun(cmd))), "", formatTable, formatJSON, formatYAML)
}

func newSet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set KIND/NAME FIELD=VALUE...",
		Short: "Change fields of an object",
		Long: `Changes fields of an object in one call; the others keep their values.
` + fieldsHelp,
		Example: `  gatehouse set upstream web weight=20
  gatehouse set route/shop/root config.timeouts.request=5s --wait
  gatehouse set upstream/web tags=blue,team-a protocol=
  gatehouse set filter/limit config=@limit.yaml --dry-run`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeFields,
		RunE:              set,
	}
	return withFormat(withServer(withWrite(withDryRun(cmd))), "", formatTable, formatJSON, formatYAML)
}

// withDryRun gives cmd the flag of a write that can be tried.
func withDryRun(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	return cmd
}

// objectAndFields reads KIND/NAME or KIND NAME and the fields behind it.
func objectAndFields(cmd *cobra.Command, args []string) (client.Kind, string, []client.Assignment, error) {
	first := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	if first < 0 {
		first = len(args)
	}
	kind, name, err := namedObject(cmd, args[:first])
	if err != nil {
		return client.Kind{}, "", nil, err
	}
	fields, err := kind.ParseAssignments(args[first:], func(file string) (string, error) {
		content, err := readSecretFile(cmd.InOrStdin(), file)
		return strings.TrimSuffix(strings.TrimSuffix(content, "\n"), "\r"), err
	})
	return kind, name, fields, err
}

func create(cmd *cobra.Command, args []string) error {
	kind, name, fields, err := objectAndFields(cmd, args)
	if err != nil {
		return err
	}
	body, err := kind.Body(fields, nil)
	if err != nil {
		return err
	}
	path, err := kind.Path(name)
	if err != nil {
		return err
	}
	parts := strings.Split(name, "/")
	body[kind.NameField] = parts[len(parts)-1]
	req := client.Request{Method: http.MethodPost, Path: path[:strings.LastIndex(path, "/")]}
	return sendFields(cmd, req, body, kind.Name+" "+name+" is created")
}

func set(cmd *cobra.Command, args []string) error {
	kind, name, fields, err := objectAndFields(cmd, args)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return fmt.Errorf("name what to change: %s %s/%s FIELD=VALUE; the fields of %s are %s", cmd.CommandPath(), kind.Name, name, kind.One(),
			strings.Join(kind.FieldNames(), ", "))
	}
	path, err := kind.Path(name)
	if err != nil {
		return err
	}
	words := kind.Name + " " + name + " is changed"
	if !slices.ContainsFunc(fields, client.Assignment.IsInside) {
		body, err := kind.Body(fields, nil)
		if err != nil {
			return err
		}
		return sendFields(cmd, client.Request{Method: http.MethodPatch, Path: path}, body, words)
	}
	for tries := 1; ; tries++ {
		err := setInside(cmd, kind, path, fields, words)
		if !isStatus(err, http.StatusPreconditionFailed) || tries == maxTries {
			return err
		}
	}
}

// maxTries is how often a part of a field is read and changed while others change the object too.
const maxTries = 5

// setInside changes parts of fields of the object as it is read now.
func setInside(cmd *cobra.Command, kind client.Kind, path string, fields []client.Assignment, words string) error {
	current, etag, err := readObject(cmd, path)
	if err != nil {
		return err
	}
	body, err := kind.Body(fields, current)
	if err != nil {
		return err
	}
	req := client.Request{Method: http.MethodPatch, Path: path, Header: http.Header{"If-Match": {etag}}}
	return sendFields(cmd, req, body, words)
}

// readObject reads one object, and the ETag for If-Match.
func readObject(cmd *cobra.Command, path string) (object json.RawMessage, etag string, err error) {
	r, err := connect(cmd)
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	err = r.call(cmd.Context(), func() (err error) {
		object, etag, err = r.OneWithETag(cmd.Context(), path)
		return err
	})
	return object, etag, err
}

// isStatus reports whether a server refused with a status.
func isStatus(err error, status int) bool {
	refused, ok := errors.AsType[*client.Error](err)
	return ok && refused.Status == status
}

// sendFields makes a write with a body, or tries it.
func sendFields(cmd *cobra.Command, req client.Request, body map[string]any, words string) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req.ContentType, req.Body = "application/json", raw
	if isSet(cmd, "dry-run") {
		req.Query = url.Values{"dry_run": {"true"}}
	}
	return send(cmd, req, func(int) string { return words })
}
