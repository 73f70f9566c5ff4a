package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("import kong", func() {
	const plain = "_format_version: \"3.0\"\nservices:\n- {name: shop, url: \"http://10.0.0.1:8080\", routes: [{name: root, hosts: [shop.test], preserve_host: true}]}\n"
	const document = `version: 1
upstreams:
    - upstream_ip: 10.0.0.1
      upstream_name: shop
      upstream_port: 8080
      upstream_protocol: http
      upstream_weight: 100
services:
    - fqdn: shop.test
      routes:
        - filters: []
          route_config:
            priority: 10000
          route_name: root
          route_prefix: /
          upstreams:
            - shop
      service_name: shop.test
`

	It("writes a document, and warnings apart, which fail the command", func() {
		Expect(run1(plain, "import", "kong", "-")).To(Equal(result{0, document, ""}))
		Expect(run1(document, "validate", "-f", "-").code).To(BeZero())
		Expect(run1(plain+"vaults: [{name: env}]\n", "import", "kong", "-")).To(Equal(result{exitFailure, document,
			"warning: line 4: the file: vaults has no equivalent\ngatehouse: the result is written, but differs from the file as the warnings above say\n"}))
	})

	It("fails with what is wrong", func() {
		Expect(run1("a: 1", "import", "kong", "-").stderr).To(ContainSubstring("reading -: _format_version is"))
		Expect(run1("", "import", "kong", "/nowhere").code).NotTo(BeZero())
	})
})
