package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("import htpasswd", func() {
	const ann = "ann:{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ=\n"
	args := func(more ...string) []string {
		return append([]string{"import", "htpasswd", "-", "--filter", "staff", "-o", "table"}, more...)
	}

	It("changes the users of a filter and the credentials of consumers, and nothing else of them", func() {
		f := importing(map[string]reply{
			"GET /filter/staff": {200, `{"data":{"core_db_filter":[{"filter_name":"staff","filter_type":"basicauth","tags":["shop"],
				"filter_config":{"users":[{"name":"old","password":"<redacted>"}],"forward":true}}]}}`, nil},
			"GET /consumer?limit=1000": {200, `{"data":{"core_db_consumer":[{"consumer_name":"ann","consumer_groups":["gold"],"tags":["shop"],
				"consumer_credentials":{"keys":["partners/ann"]}},{"consumer_name":"bob"}]}}`, nil},
		})
		Expect(run1(ann, args("--consumers")...).code).To(BeZero())
		Expect(f.calls).To(Equal([]string{"GET /filter/staff", "GET /consumer?limit=1000", "PUT /config"}))
		Expect(f.bodies[2]).To(MatchJSON(`{"version":1,
			"filters":[{"filter_name":"staff","filter_type":"basicauth","tags":["shop"],
				"filter_config":{"users":[{"name":"ann","password":"{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ="}],"forward":true}}],
			"consumers":[{"consumer_name":"ann","consumer_groups":["gold"],"tags":["shop"],
				"consumer_credentials":{"keys":["partners/ann"],"users":["staff/ann"]}}]}`))
	})

	It("does nothing with a dry run, with a filter of another type, or with a line that is refused", func() {
		f := importing(map[string]reply{"GET /filter/staff": {404, `{"code":"not_found"}`, nil}})
		Expect(run1(ann, args("--dry-run")...)).To(Equal(result{0, "0 to create, 0 to update, 0 to delete, 3 unchanged\n", ""}))
		Expect(f.calls).To(Equal([]string{"GET /filter/staff", "PUT /config?dry_run=true"}))

		f = importing(map[string]reply{"GET /filter/staff": {200, `{"data":{"core_db_filter":[{"filter_name":"staff","filter_type":"http_filter_jwt","filter_config":{}}]}}`, nil}})
		Expect(run1(ann, args()...)).To(Equal(result{exitFailure, "", "gatehouse: filter staff is of type http_filter_jwt; choose another name\n"}))
		Expect(f.calls).To(Equal([]string{"GET /filter/staff"}))

		r := run1("ann:$apr1$s3cret\n", args()...)
		Expect(r.code).To(Equal(exitFailure))
		Expect(r.stderr).To(And(ContainSubstring("\n  line 1: ann: the password is in a form that Envoy does not verify: MD5 (apr1)."), Not(ContainSubstring("s3cret"))))
		Expect(f.calls).To(HaveLen(1))
		Expect(run1("ann:x\n", args("--lenient")...).code).To(Equal(exitFailure), "nobody is left")
		Expect(run1("", "import", "htpasswd", "/nowhere", "--filter", "staff").code).To(Equal(exitFailure))
		Expect(run1(ann, "import", "htpasswd", "-").code).To(Equal(exitBadUsage))
	})
})
