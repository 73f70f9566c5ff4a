package explain_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

func TestExplain(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Explain")
}

// host is a virtual host with routes that answer themselves.
func host(name string, domains []string, routes ...*routev3.Route) *snapshot.Host {
	GinkgoHelper()
	var encoded []*snapshot.Route
	for _, r := range routes {
		e, err := snapshot.NewRoute(r)
		Expect(err).NotTo(HaveOccurred())
		encoded = append(encoded, e)
	}
	h, err := snapshot.NewHost(&routev3.VirtualHost{Name: name, Domains: domains}, encoded, snapshot.ObjectRef{Kind: "service", Name: name})
	Expect(err).NotTo(HaveOccurred())
	return h
}

// answering is a route that answers itself.
func answering(name string, m *routev3.RouteMatch) *routev3.Route {
	return &routev3.Route{
		Name: name, Match: m, Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}
}

func prefixed(p string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: p}}
}

// must returns the value of a call that cannot fail.
func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// state returns an Envoy with the listener of a proxy.
func state(hosts ...*snapshot.Host) explain.State {
	GinkgoHelper()
	return stateWith(func(*hcmv3.HttpConnectionManager) {}, hosts...)
}

// stateWith is state with another listener.
func stateWith(change func(*hcmv3.HttpConnectionManager), hosts ...*snapshot.Host) explain.State {
	GinkgoHelper()
	l := must(translate.Listener(ir.Listener{Address: "0.0.0.0", Port: 8080}))
	filter := l.GetFilterChains()[0].GetFilters()[0]
	var hcm hcmv3.HttpConnectionManager
	Expect(filter.GetTypedConfig().UnmarshalTo(&hcm)).To(Succeed())
	change(&hcm)
	packed, err := anypb.New(&hcm)
	Expect(err).NotTo(HaveOccurred())
	filter.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
	r, err := snapshot.NewListener(l)
	Expect(err).NotTo(HaveOccurred())
	return explain.State{Listeners: []*snapshot.Resource{r}, Routes: &routev3.RouteConfiguration{Name: "gatehouse"}, Hosts: hosts}
}

// ask explains a GET.
func ask(have explain.State, url string, headers ...string) explain.Answer {
	GinkgoHelper()
	r, errs := explain.NewRequest("", url, headers)
	Expect(errs).To(BeEmpty())
	a, err := explain.Explain(have, r)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// said returns the message of an answer about a filter; empty if there is none.
func said(a explain.Answer, name string) string {
	for _, f := range a.Filters {
		if f.Name == name {
			return f.Message
		}
	}
	return ""
}
