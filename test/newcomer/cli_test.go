package newcomer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// cliObjects is what docs/cli.md takes for granted.
const cliObjects = `version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 192.0.2.1, upstream_port: 8001}
- {upstream_name: red, upstream_ip: 192.0.2.2, upstream_port: 8001}
- {upstream_name: red2, upstream_ip: 192.0.2.3, upstream_port: 8001}
keysets:
- {keyset_name: partners}
services:
- service_name: shop
  fqdn: shop.example.com
  routes:
  - {route_name: root, route_prefix: /, upstreams: [red]}
proxies:
- {name: gw, services: [shop]}
- {name: edge}
`

// cliBad has two mistakes.
const cliBad = `version: 1
upstreams:
- upstream_name: red
  upstream_ip: 192.0.2.1
  upstream_port: 99999
services:
- {service_name: shop, fqdn: shop.example.com, routes: [
    {route_name: root, route_prefix: /,
    route_prefx: /}]}
`

// cliKong is a declarative file of Kong, cliIngress an Ingress.
const (
	cliKong    = "_format_version: \"3.0\"\nservices:\n- {name: shop, url: \"http://192.0.2.1:8080\", routes: [{name: root, hosts: [shop.test]}]}\n"
	cliIngress = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, annotations: {nginx.ingress.kubernetes.io/ssl-redirect: "false"}}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`
)

// cliAPI is an OpenAPI document.
const cliAPI = `openapi: 3.0.3
info: {title: users, version: "1"}
servers: [{url: "http://users.example.com/v1"}]
paths:
  /users/{id}/{part}:
    parameters:
    - {name: id, in: path, required: true, schema: {type: string}}
    - {name: part, in: path, required: true, schema: {type: string}}
    get: {operationId: getPart, responses: {"200": {description: ok}}}
`

var _ = Describe("docs/cli.md", func() {
	It("has no line that fails", func(ctx SpecContext) {
		g := standalone()
		binary, err := filepath.Abs("../../bin")
		Expect(err).NotTo(HaveOccurred())
		GinkgoT().Setenv("PATH", binary+":"+os.Getenv("PATH"))
		GinkgoT().Setenv("HOME", g.dir)
		write(g.dir, "gateway.yaml", cliObjects)
		write(g.dir, "users.yaml", cliAPI)
		write(g.dir, "api.yaml", strings.ReplaceAll(cliAPI, "users.example", "api.example"))
		write(g.dir, "bad.yaml", cliBad)
		write(g.dir, "kong.yaml", cliKong)
		write(g.dir, "users.htpasswd", "ann:{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ=\n")
		write(g.dir, "ingresses.yaml", cliIngress)
		GinkgoT().Setenv("VISUAL", "true")
		for _, file := range []string{"token", "ca.pem", "backup/none"} {
			write(g.dir, file, "")
		}
		for _, t := range typedLines("cli.txt") {
			if strings.HasPrefix(t.command, "gatehouse restore ") {
				Expect(g.Stop(ctx)).To(BeZero(), g.Stderr.String())
			}
			g.typed(t, "/var/lib/gatehouse", g.data, "/backup", filepath.Join(g.dir, "backup"))
		}
	})

	It("has no line that no spec runs", func() {
		typed := map[string]bool{}
		for _, t := range typedLines("cli.txt") {
			line := regexp.MustCompile(`^timeout \d+ `).ReplaceAllString(t.command, "")
			typed[line], typed[strings.TrimPrefix(line, "gatehouse ")] = true, true
		}
		text, err := os.ReadFile("../../docs/cli.md")
		Expect(err).NotTo(HaveOccurred())
		lines := regexp.MustCompile("(?m)^\\$ (gatehouse .*)$|`(gatehouse [^`]*)`|`((?:attach|backup|context|copy|create|delete|describe|diff|edit|get|history|set|status|token|validate|watch) [^-`][^`]*)`").FindAllStringSubmatch(string(text), -1)
		Expect(len(lines)).To(BeNumerically(">", 40))
		names := regexp.MustCompile(`^gatehouse (import crd|serve|events)$|^token revoke$|\b(FILE|NAME)\b`)
		var missing []string
		for _, m := range lines {
			if line := m[1] + m[2] + m[3]; !typed[line] && !names.MatchString(line) {
				missing = append(missing, line)
			}
		}
		Expect(missing).To(BeEmpty())
	})
})
