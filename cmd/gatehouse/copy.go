package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newCopy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy KIND/NAME NEW [FIELD=VALUE...]",
		Short: "Copy an object under another name",
		Long: `Copies an object in one call, with the fields that differ. A service is copied with its
routes and what is attached to them, and is attached to no proxy. A route is copied with
what is attached to it: within its service, or into another one (SERVICE/ROUTE). Every other
object is copied alone. Secrets, key sets and keys are not copied.
` + fieldsHelp,
		Example: `  gatehouse copy service shop shop-test fqdn=test.example.com
  gatehouse copy route/shop/root v2 prefix=/v2
  gatehouse copy upstream web web-2 ip=10.0.0.2`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: completeObject,
		RunE:              copyObject,
	}
	return withFormat(withServer(withWrite(withDryRun(cmd))), "", formatTable, formatJSON, formatYAML)
}

func copyObject(cmd *cobra.Command, args []string) error {
	first := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "=") })
	if first < 0 {
		first = len(args)
	}
	if first < 2 {
		return fmt.Errorf("name the object and its copy; usage: %s", cmd.UseLine())
	}
	target := args[first-1]
	kind, name, fields, err := objectAndFields(cmd, slices.Concat(args[:first-1], args[first:]))
	if err != nil {
		return err
	}
	path, err := kind.Path(name)
	if err != nil {
		return err
	}
	to, err := copyName(kind, name, target)
	if err != nil {
		return err
	}
	var current json.RawMessage
	switch kind.Name {
	case "secret":
		return errors.New("a secret cannot be copied, because its contents are not shown; gatehouse secret set stores another one")
	case "key", "keyset":
		return fmt.Errorf("%s cannot be copied, because only hashes of keys are stored; gatehouse create %s makes another one", kind.One(), kind.Name)
	}
	if slices.ContainsFunc(fields, client.Assignment.IsInside) || !isCopiedByServer(kind) {
		if current, _, err = readObject(cmd, path); err != nil {
			return err
		}
	}
	body, err := kind.Body(fields, current)
	if err != nil {
		return err
	}
	req := client.Request{Method: http.MethodPost, Path: client.Path(kind.Name)}
	from := strings.Split(name, "/")
	switch kind.Name {
	case "service":
		req.Path = client.Path("service", "deepcopy", name, to)
	case "route":
		service, route, _ := strings.Cut(to, "/")
		req.Path = client.Path("service", "copyroute", from[0], service, "route", from[1])
		body[kind.NameField] = route
	case "upstream":
		req.Path = client.Path("upstream", "copy", name, to)
	default:
		stored, err := kind.Fields(current)
		if err != nil {
			return &runError{err}
		}
		maps.Copy(stored, body)
		stored[kind.NameField], body = to, stored
	}
	return sendFields(cmd, req, body, kind.Name+" "+name+" is copied to "+to)
}

// isCopiedByServer reports whether the API has a call that copies what is attached too.
func isCopiedByServer(kind client.Kind) bool {
	return slices.Contains([]string{"upstream", "service", "route"}, kind.Name)
}

// copyName is the full name of a copy: NEW, KIND/NEW or, of what is inside another object, OWNER/NEW.
func copyName(kind client.Kind, name, target string) (string, error) {
	if k, full, err := client.ParseObject(target); err == nil && k.Name == kind.Name {
		target = full
	}
	if owner, _, inside := strings.Cut(name, "/"); inside && !strings.Contains(target, "/") {
		target = owner + "/" + target
	}
	_, err := kind.Path(target)
	return target, err
}
