package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain PROXY URL",
		Short: "Show what Envoy does with a request, and why",
		Long: `Shows what the Envoys of a proxy do with a request: the service and the route that
receive it, why the routes before do not match, what the upstream sees, and each
answer that the gateway gives by itself; for an https URL also the certificate that
answers. Nothing is sent to an Envoy. A table has at most 24 lines unless --all is given; -o json and -o yaml have everything.`,
		Example: `  gatehouse explain gw http://shop.example.com/cart
  gatehouse explain gw 'http://shop.example.com/cart?a=b' -X POST -H 'x-tier: gold'
  gatehouse explain gw https://shop.example.com/cart
  gatehouse explain gw http://127.0.0.1:8080/cart -H 'Host: shop.example.com' -o json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeProxyFirst,
		RunE: func(cmd *cobra.Command, args []string) error {
			query, err := requestQuery(cmd, args[1])
			if err != nil {
				return err
			}
			r, err := connect(cmd)
			if err != nil {
				return err
			}
			defer r.Close()
			return r.showExplained(cmd, client.Request{Method: http.MethodGet, Path: client.Path("proxy", args[0], "explain"), Query: query})
		},
	}
	cmd.Flags().Bool("all", false, "show everything, even if it is more than 24 lines")
	return withFormat(withServer(withRequest(named(cmd, "proxy"))), "", formatTable, formatJSON, formatYAML)
}

// withRequest gives cmd the flags that describe a request.
func withRequest(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringP("method", "X", "", "method of the request (default: GET)")
	cmd.Flags().StringArrayP("header", "H", nil, "header of the request, 'name: value'; may be repeated")
	cmd.Flags().String("address", "", "address of the connection: the client's, or with trusted hops the address of the last proxy in front (default: 127.0.0.1)")
	return cmd
}

// requestQuery describes the request of withRequest's flags to the API.
func requestQuery(cmd *cobra.Command, target string) (url.Values, error) {
	query := url.Values{"url": {target}}
	for _, name := range []string{"method", "address"} {
		if value := text(cmd, name); value != "" {
			query.Set(name, value)
		}
	}
	lines, err := cmd.Flags().GetStringArray("header")
	query["header"] = lines
	return query, err
}

// completeProxyFirst completes the name of a proxy, and nothing behind it.
func completeProxyFirst(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeObject(cmd, []string{"proxy"}, typed)
}

func sign(yes bool) string {
	if yes {
		return "+"
	}
	return "-"
}
