package main

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("import ingress", func() {
	const plain = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  annotations: {nginx.ingress.kubernetes.io/mirror-target: "https://copy.example"}
spec:
  rules:
  - host: shop.example
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
`
	const warning = "warning: line 5: Ingress default/shop: nginx.ingress.kubernetes.io/mirror-target: has no equivalent\n"

	It("writes objects, and warnings apart", func() {
		Expect(run1(plain+"---\nkind: Service\n", "import", "ingress", "-", "--proxy", "edge")).To(Equal(result{exitFailure, `apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata:
  name: shop.example
  namespace: default
spec:
  proxy: edge
  routes:
  - conditions:
    - prefix: /
    services:
    - name: web
      port: 80
  virtualhost:
    fqdn: shop.example
`, "warning: objects of the kind Service are left out\n" + warning + "gatehouse: the result is written, but differs from the file as the warnings above say\n"}))
	})

	It("fails with what is wrong", func() {
		same := strings.Replace(plain, "mirror-target: \"https://copy.example\"", "ssl-ciphers: HIGH", 1)
		Expect(run1(same, "import", "ingress", "-").code).To(BeZero(), "nothing changes without it")
		Expect(run1(plain, "import", "ingress", "-", "--class", "nginx")).To(Equal(result{exitFailure, "", "gatehouse: there is no Ingress to translate; --class selects by class\n"}))
		Expect(run1("kind: [", "import", "ingress", "-").code).To(Equal(exitFailure))
		Expect(run1("", "import", "ingress", "/nowhere").code).NotTo(BeZero())
	})
})
