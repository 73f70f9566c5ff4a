package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("login test", func() {
	const answer = `{"service_name":"shop","proxy_name":"gw","login":"/filter/staff","url":"https://shop.test:8443/","ok":false,"steps":[` +
		`{"step":"login","result":"ok","message":"/filter/staff requires it"},` +
		`{"step":"secret","result":"failed","message":"refused: \u001b[2J","advice":"write it again"}]}`

	It("shows each step and what to do, and fails if a step fails", func() {
		serving("POST /service/shop/login/test?proxy=gw&url=https%3A%2F%2Fshop.test", reply{200, `{"data":{"core_db_login_test":[` + answer + `]}}`, nil})
		got := run1("", "login", "test", "shop", "--proxy", "gw", "--url", "https://shop.test", "-o", "table")
		Expect(got.code).To(Equal(1))
		Expect(got.stdout).To(Equal(`https://shop.test:8443/
ok       login          /filter/staff requires it
FAILED   secret         refused: \u001b[2J
                        -> write it again
`))
		Expect(got.stderr).To(ContainSubstring("the login cannot work: see the steps that FAILED"))
		got = run1("", "login", "test", "shop", "--proxy", "gw", "--url", "https://shop.test", "-o", "json")
		Expect(got.stdout).To(MatchJSON(answer))
		Expect(got.code).To(Equal(1))
	})
})
