package kubernetes_test

import (
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A GRPCRoute", func() {
	It("takes calls by service, method and headers, beside an HTTPRoute of its name", func() {
		e := newEdge(nil)
		for _, name := range []string{"blue", "green", "red"} {
			b, err := testkit.StartBackend(name, testkit.BackendOptions{Protocol: "h2c", IP: ownAddress()})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(b.Close)
			e.service(name, b)
		}
		e.service("plain", backend("plain"))
		e.listeners(anyHTTP)
		to := func(name string) string { return fmt.Sprintf("backendRefs: [{name: %s, port: 80}]", name) }
		e.route(e.place, "shop", "  hostnames: [web.example]\n  rules: [{"+to("plain")+"}]")
		e.routeOf("GRPCRoute", e.place, "shop", `
  hostnames: [calls.example]
  rules:
  - {matches: [{method: {method: Get}}], `+to("red")+`}
  - {matches: [{method: {service: shop.Books}}], `+to("green")+`}
  - {matches: [{method: {service: shop.Books, method: Get}}], `+to("blue")+`}
  - {matches: [{method: {service: shop.Books}, headers: [{name: x-a, value: "1"}]}], `+to("red")+`}
  - matches: [{method: {type: RegularExpression, service: "shop[.](Toys|Games)", method: "List.*"}}]
    filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: s}]}}]
    `+to("red"))
		e.routeOf("GRPCRoute", e.place, "all", "  hostnames: [all.example]\n  rules: [{"+to("green")+"}]")
		Eventually(func() string { return e.ask("POST calls.example /shop.Books/Get") }).Should(Equal("200 blue"), e.Stderr.String)
		for request, answer := range map[string]string{
			"POST calls.example /shop.Books/Add":        "200 green",
			"POST calls.example /shop.Books/Get x-a:1":  "200 blue", // a method comes before headers
			"POST calls.example /shop.Books/Add x-a:1":  "200 red",
			"POST calls.example /shop.BooksX/Add":       "404",
			"POST calls.example /other.Service/Get":     "200 red",
			"POST calls.example /other.Service/Getter":  "404",
			"POST calls.example /shop.Games/ListAll":    "200 red",
			"POST calls.example /shop.Games/Delete":     "404",
			"POST calls.example /v2.shop.Games/ListAll": "404",
		} {
			Expect(e.ask(request)).To(Equal(answer), request)
		}
		Expect(e.ask("POST calls.example /shop.Toys/List x-set:old", "x-set")).To(Equal("200 red x-set=s"))
		Eventually(func() string { return e.ask("POST all.example /any.Service/Call") }).Should(Equal("200 green"))
		Eventually(func() string { return e.ask("GET web.example /") }).Should(Equal("200 plain"))
		for _, route := range []string{"grpcroute/shop", "grpcroute/all", "httproute/shop"} {
			Eventually(e.parent(route, "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"), route)
			Expect(e.parent(route, "Accepted")()).To(Equal("True Accepted"), route)
		}
		Eventually(func() string { return e.jsonPath("gateway", "web", "{.status.listeners[0].attachedRoutes}") }).Should(Equal("3"))
		e.kubectl("delete", "grpcroute", "shop")
		Eventually(func() string { return e.ask("POST calls.example /shop.Books/Get") }).Should(Equal("404"))
		Expect(e.ask("GET web.example /")).To(Equal("200 plain"))
	})

	It("serves calls of gRPC, and a listener may take nothing else", func() {
		e := newEdge(nil)
		listener, err := net.Listen("tcp", net.JoinHostPort(ownAddress(), "0"))
		Expect(err).NotTo(HaveOccurred())
		calls := grpc.NewServer()
		healthpb.RegisterHealthServer(calls, health.NewServer())
		go func() { _ = calls.Serve(listener) }()
		DeferCleanup(calls.Stop)
		e.service("calls", &testkit.Backend{IP: ownAddress(), Port: listener.Addr().(*net.TCPAddr).Port})
		e.listeners("  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}")
		e.routeOf("GRPCRoute", e.place, "calls", "  rules: [{matches: [{method: {service: grpc.health.v1.Health}}], backendRefs: [{name: calls, port: 80}]}]")
		e.route(e.place, "web", "  rules: [{backendRefs: [{name: calls, port: 80}]}]")
		connection, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", e.port), grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(connection.Close)
		Eventually(func() (string, error) {
			answer, err := healthpb.NewHealthClient(connection).Check(limit(), &healthpb.HealthCheckRequest{})
			return answer.GetStatus().String(), err
		}).Should(Equal("SERVING"))
		Eventually(e.parent("web", "Accepted")).Should(Equal("False NotAllowedByListeners"))
	})
})
