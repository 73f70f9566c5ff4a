package translate

import (
	_ "embed"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	injectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/credential_injector/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	upstreamcodecv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/upstream_codec/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	genericv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/injected_credentials/generic/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// callHeaders is a script that leaves only some headers to a request, callOK one that makes 200 of every 2xx.
var (
	//go:embed call.lua
	callHeaders string
	//go:embed call_ok.lua
	callOK string
)

// framing returns the headers that frame the body of a call and say what it is.
func framing() []string { return []string{"content-length", "content-type", "transfer-encoding"} }

// callFilters are the filters of a cluster for the calls of a filter, and for what collectors receive. Envoy has no
// setting for it per route.
func callFilters(c *ir.Cluster) ([]*hcmv3.HttpFilter, error) {
	var filters []seam.Message
	if c.Call != nil {
		filters = append(filters, seam.Message{
			Name: seam.LuaFilter, Config: &luav3.Lua{DefaultSourceCode: seam.Inline(callScript(c.Call))},
		})
	}
	if c.Credential != nil {
		generic, err := pack(&genericv3.Generic{
			Credential: seam.SDSSecret(credentialPrefix + c.Credential.Secret), Header: c.Credential.Header,
		})
		if err != nil {
			return nil, err
		}
		filters = append(filters, seam.Message{
			Name: "envoy.filters.http.credential_injector", Config: &injectorv3.CredentialInjector{
				Overwrite:  true,
				Credential: &corev3.TypedExtensionConfig{Name: "envoy.http.injected_credentials.generic", TypedConfig: generic},
			},
		})
	}
	if len(filters) == 0 {
		return nil, nil
	}
	var list []*hcmv3.HttpFilter
	for _, f := range append(filters, seam.Message{
		Name: "envoy.filters.http.upstream_codec", Config: &upstreamcodecv3.UpstreamCodec{},
	}) {
		config, err := pack(f.Config)
		if err != nil {
			return nil, err
		}
		list = append(list, &hcmv3.HttpFilter{Name: f.Name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}})
	}
	return list, nil
}

func callScript(c *ir.Call) string {
	script := ""
	if c.Headers != nil {
		var names strings.Builder
		for _, name := range append(framing(), c.Headers...) {
			fmt.Fprintf(&names, `["%s"]=true;`, seam.LuaText(name))
		}
		script = strings.Replace(callHeaders, "@HEADERS@", names.String(), 1)
	}
	if c.OK {
		script += callOK
	}
	return script
}
