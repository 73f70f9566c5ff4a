package rest_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A list", func() {
	const (
		office = `Filter_config={"allow_lists":["office"],"deny_lists":["bad","office"]}`
		access = "&Filter_type=vh_filter_ipaccess&"
	)
	lists := []string{
		"/list", `List_name=office&List_type=addresses&List_config={"addresses":["192.0.2.0/24"]}`,
		"/list", `List_name=bad&List_type=addresses&List_config={"addresses":[]}`,
		"/list", `List_name=secure&List_type=headers&List_config={"response":{"set":{"x-a":"1"}}}`,
	}

	It("is created, listed with its users, changed and deleted, and cannot be deleted while filters name it", func() {
		a := startAPI(checked)
		a.given(append(lists, "/filter", "Filter_name=f"+access+office, "/filter", `Filter_name=h&Filter_type=route_filter_headers&Filter_config={"lists":["secure"]}`)...)
		Expect(a.get("/list/office").body).To(ContainSubstring(`"list_name":"office","list_type":"addresses","list_config":{"addresses":["192.0.2.0/24"]},"tags":[]`))
		Expect(a.get("/list/secure/filter").body).To(And(ContainSubstring(`"filter_name":"h"`), Not(ContainSubstring(`"filter_name":"f"`))))
		Expect(a.patch("/list/office", `List_config={"addresses":["2001:db8::/32"]}`).status).To(Equal(200))
		got := a.delete("/list/office")
		Expect(got.status).To(Equal(409))
		Expect(got.body).To(ContainSubstring(`"referenced_by":["/filter/f"]`))
		Expect(a.delete("/filter/f").status).To(Equal(200))
		Expect(a.delete("/list/office").status).To(Equal(200))
	})

	DescribeTable("is refused with a wrong configuration", func(body, field, message string) {
		a := startAPI()
		got := a.post("/list", "List_name=l&"+body)
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`{"field":"` + field + `","message":"` + message))
	},
		Entry(nil, `List_type=adresses&List_config={}`, "List_type", `\"adresses\"`),
		Entry(nil, `List_type=addresses&List_config={}`, "List_config.addresses", "is required"),
		Entry(nil, `List_type=addresses&List_config={"addresses":["x","192.0.2.1"]}`, "List_config.addresses", `\"x\" is not an address or a range`),
		Entry(nil, `List_type=addresses&List_config={"addresses":["`+strings.Repeat(`192.0.2.1","`, 10_000)+`192.0.2.1"]}`, "List_config.addresses", "has 10001 entries; at most 10000 are allowed"),
		Entry(nil, `List_type=headers&List_config={}`, "List_config", "changes no header"),
		Entry(nil, `List_type=headers&List_config={"request":{"set":{"host":"x"}}}`, "List_config.request.set.host", `\"host\" cannot be changed`),
		Entry(nil, `List_type=headers&List_config={"response":{"set":{"server":"x"}}}`, "List_config.response", `\"server\" is set by the gateway`),
	)

	DescribeTable("must exist and have the right type", func(filter, field, message string) {
		a := startAPI(checked)
		a.given(lists...)
		got := a.post("/filter", "Filter_name=f&"+filter)
		Expect(got.status).To(Equal(422), got.body)
		Expect(got.body).To(ContainSubstring(`{"field":"Filter_config.` + field + `","message":"names /list/` + message))
	},
		Entry(nil, `Filter_type=vh_filter_ipaccess&Filter_config={"allow_lists":["office","gone"]}`, "allow_lists", "gone, which does not exist"),
		Entry(nil, `Filter_type=vh_filter_ipaccess&Filter_config={"deny_lists":["secure"]}`, "deny_lists", "secure, which is a list of headers, and not of addresses"),
		Entry(nil, `Filter_type=vh_filter_rbac&Filter_config={"allow":[{"address_lists":["secure"]}]}`, "allow.address_lists", "secure, which is a list of headers"),
		Entry(nil, `Filter_type=vh_filter_rbac&Filter_config={"allow":[{}],"deny":[{"address_lists":["gone"]}]}`, "deny.address_lists", "gone, which does not exist"),
		Entry(nil, `Filter_type=vh_filter_maintenance&Filter_config={"except_lists":["secure"]}`, "except_lists", "secure, which is a list of headers"),
		Entry(nil, `Filter_type=route_filter_headers&Filter_config={"lists":["office"]}`, "lists", "office, which is a list of addresses, and not of headers"),
	)

	It("has names that are checked, and not too many of them", func() {
		a := startAPI()
		for config, message := range map[string]string{
			`{"allow_lists":[]}`:      `"field":"Filter_config.allow_lists","message":"is empty, so no client would be allowed`,
			`{"allow_lists":["a/b"]}`: `"field":"Filter_config.allow_lists[0]","message":"`,
			`{"deny_lists":["` + strings.Repeat(`a","`, 20) + `a"]}`: `"field":"Filter_config.deny_lists","message":"has 21 lists; at most 20 are allowed`,
		} {
			got := a.post("/filter", "Filter_name=f"+access+"Filter_config="+config)
			Expect(got.status).To(Equal(400))
			Expect(got.body).To(ContainSubstring(message))
		}
	})

	It("keeps its type while a filter names it", func() {
		a := startAPI(checked)
		a.given(append(lists, "/filter", "Filter_name=f"+access+office)...)
		got := a.put("/list/bad", `List_type=headers&List_config={"response":{"remove":["x-a"]}}`)
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring("/list/bad is a list of addresses, as /filter/f needs it: its type cannot change"))
		a.get("/list?tag=none").expectJSON(200, `{"data":{"core_db_list":[]}}`)
		Expect(a.put("/list/secure", `List_type=addresses&List_config={"addresses":[]}`).status).To(Equal(200))
	})

	It("is a section of the document, before the filters that name it, and can be rolled back", func() {
		a := startAPI(checked)
		a.given(append(lists, "/filter", "Filter_name=f"+access+office)...)
		document := a.get("/config").body
		Expect(document).To(ContainSubstring("lists:\n"))
		Expect(document).To(ContainSubstring("- list_name: office\n  list_type: addresses\n  list_config:\n    addresses:\n    - 192.0.2.0/24\n"))
		objects := func(document string) string { // without the revision
			_, after, _ := strings.Cut(document, "lists:")
			return after
		}
		b := startAPI(checked)
		Expect(b.do("PUT", "/config", "application/yaml", strings.NewReader(document)).status).To(Equal(200))
		Expect(b.get("/config").body).To(HaveSuffix(objects(document)))
		Expect(b.patch("/list/office", `List_config={"addresses":[]}`).status).To(Equal(200))
		Expect(b.post("/revision/1/rollback", "").status).To(Equal(200))
		Expect(b.get("/config").body).To(HaveSuffix(objects(document)))
	})

	It("may have 10,000 ranges", func() {
		a := startAPI(checked)
		var list []string
		for i := range 10_000 {
			list = append(list, fmt.Sprintf(`"2001:db8:%x:%x::/64"`, i/100, i%100))
		}
		Expect(a.postJSON("/list", `{"List_name":"l","List_type":"addresses","List_config":{"addresses":[`+strings.Join(list, ",")+`]}}`).status).To(Equal(201))
	})
})
