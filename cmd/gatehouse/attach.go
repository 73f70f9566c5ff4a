package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newAttach() *cobra.Command {
	return newLink("attach", http.MethodPost, "Attach an object to another",
		`Attaches an upstream to a route, a filter to a route or a service, a secret to a
service, or a service or a global config to a proxy. If it is attached already,
nothing changes.`,
		func(status int, what, target string) string {
			if status == http.StatusCreated {
				return what + " is attached to " + target
			}
			return what + " was attached to " + target + " already"
		})
}

func newDetach() *cobra.Command {
	return newLink("detach", http.MethodDelete, "Detach an object from another",
		`Detaches an object from another. Both objects stay.`,
		func(_ int, what, target string) string { return what + " is detached from " + target })
}

func newLink(name, method, short, long string, words func(status int, what, target string) string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name + " KIND/NAME KIND/NAME",
		Short: short,
		Long:  long,
		Example: "  gatehouse " + name + ` upstream/blue service/shop/route/root
  gatehouse ` + name + ` filter/limit service/shop/route/root
  gatehouse ` + name + ` filter/login service/shop
  gatehouse ` + name + ` secret/shop-tls service/shop
  gatehouse ` + name + ` service/shop proxy/gw
  gatehouse ` + name + ` globalconfig/rates proxy/gw`,
		Args:              cobra.RangeArgs(2, 4),
		ValidArgsFunction: completeLink,
		RunE: func(cmd *cobra.Command, args []string) error {
			objects, err := namedObjects(cmd, args, 2)
			if err != nil {
				return err
			}
			path, err := client.LinkPath(objects[0], objects[1])
			if err != nil {
				return err
			}
			return send(cmd, client.Request{Method: method, Path: path}, func(status int) string {
				return words(status, objects[0], objects[1])
			})
		},
	}
	return withFormat(withServer(withWrite(cmd)), "", formatTable, formatJSON, formatYAML)
}
