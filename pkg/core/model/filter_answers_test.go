package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// refusedField is the first field that is wrong with a filter; empty means that it is right.
func refusedField(kind, config string) string {
	f := &model.Filter{Name: "f", Type: kind, Config: model.JSON(config)}
	if errs := f.Validate(); len(errs) > 0 {
		return strings.TrimPrefix(errs[0].Field, "Filter_config")
	}
	return ""
}

// faultsOf lists what is wrong with a filter, each with its field.
func faultsOf(kind, config string) []string {
	list := []string{}
	for _, e := range (&model.Filter{Name: "f", Type: kind, Config: model.JSON(config)}).Validate() {
		list = append(list, strings.TrimPrefix(e.Field, "Filter_config")+" "+e.Message)
	}
	return list
}

// adviceOf lists what a filter warns about.
func adviceOf(kind, config string) []string {
	spec, _ := (&model.Filter{Name: "f", Type: kind, Config: model.JSON(config)}).Parse().Spec.(interface{ Advice() []string })
	return append([]string{}, spec.Advice()...)
}

var _ = DescribeTable("A redirect", func(config, field string, code int) {
	Expect(refusedField(model.FilterRedirect, config)).To(Equal(field))
	if field == "" {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterRedirect, Config: model.JSON(config)}).Parse().Spec.(*model.RedirectFilter)
		Expect(spec.Code).To(Equal(code))
	}
},
	Entry("has a host", `{"host":"new.test"}`, "", 307),
	Entry("has an address", `{"host":"[2001:db8::1]","code":303}`, "", 303),
	Entry("has the scheme http", `{"scheme":"http"}`, "", 307),
	Entry("has the scheme https", `{"scheme":"https"}`, "", 308),
	Entry("has a path with a query", `{"path":"/a?b=/c?d"}`, "", 307),
	Entry("has a host with a port", `{"host":"new.test:80"}`, ".host", 0),
	Entry("has a template as host", `{"host":"%REQ(host)%"}`, ".host", 0),
	Entry("has a path with a line break", `{"path":"/a\r\nb"}`, ".path", 0),
	Entry("has a query with a space", `{"path":"/a?b c"}`, ".path", 0),
)

var _ = Describe("A redirect without a target", func() {
	It("is refused", func() {
		f := &model.Filter{Name: "f", Type: model.FilterRedirect, Config: `{"code":301}`}
		Expect(f.Validate()).To(HaveLen(1))
	})

	It("or with two is refused", func() {
		Expect(faultsOf(model.FilterRedirect, `{"path":"/a","regex":"/b","substitution":"/c"}`)).To(Equal([]string{" takes only one of path, prefix and regex"}))
	})
})

var _ = DescribeTable("A direct response", func(config, field string) {
	Expect(refusedField(model.FilterDirectResponse, config)).To(Equal(field))
},
	Entry("has nothing but its status", `{"status":404}`, ""),
	Entry("has the maximum length", fmt.Sprintf(`{"body":%q}`, strings.Repeat("a", 65536)), ""),
	Entry("is too long", fmt.Sprintf(`{"body":%q}`, strings.Repeat("a", 65537)), ".body"),
	Entry("redirects", `{"status":301}`, ".status"),
	Entry("has an invalid content type", `{"content_type":"text/html\r\nx: y"}`, ".content_type"),
	Entry("has a header of the connection", `{"headers":{"te":"x"}}`, ".headers.te"),
)
