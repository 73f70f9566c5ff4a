package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A configuration with passwords", func(config, field string) {
	Expect(refusedField(model.FilterBasicAuth, config)).To(Equal(field))
},
	Entry("of 12 characters", `{"users":[{"name":"a","password":"twelve-chars"}]}`, ""),
	Entry("of 12 characters in more bytes", `{"users":[{"name":"a","password":"zwölf-Länge!"}]}`, ""),
	Entry("of 11 characters", `{"users":[{"name":"a","password":"twelve-char"}]}`, ".users[0].password"),
	Entry("of 256 bytes", fmt.Sprintf(`{"users":[{"name":"a","password":%q}]}`, strings.Repeat("a", 256)), ""),
	Entry("of 257 bytes", fmt.Sprintf(`{"users":[{"name":"a","password":%q}]}`, strings.Repeat("a", 257)), ".users[0].password"),
	Entry("with a control character", `{"users":[{"name":"a","password":"twelve\u0000chars"}]}`, ".users[0].password"),
	Entry("that ends in a space", `{"users":[{"name":"a","password":"twelve-chars "}]}`, ".users[0].password"),
	Entry("that is hashed", `{"users":[{"name":"a","password":"{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ="}]}`, ""),
	Entry("that is almost hashed", `{"users":[{"name":"a","password":"{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCo"}]}`, ".users[0].password"),
	Entry("in a secret", `{"users":[{"name":"a","password":{"secret":"x"}}]}`, ""),
	Entry("in a secret without a name", `{"users":[{"name":"a","password":{"secret":"a b"}}]}`, ".users[0].password.secret"),
	Entry("that are sealed, or redacted", `{"users":[{"name":"a","password":"sealed:v1:x"},{"name":"b","password":"<redacted>"}]}`, ""),
	Entry("under a key in another letter case", `{"users":[{"name":"a","PASSWORD":"twelve-chars"}]}`, ".users[0].PASSWORD"),
	Entry("in a list in another letter case", `{"Users":[{"name":"a","password":"twelve-chars"}]}`, ".Users"),
	Entry("of a name with every allowed character", `{"users":[{"name":"A.z_0-9@+","password":"twelve-chars"}]}`, ""),
	Entry("of a name with a colon", `{"users":[{"name":"a:b","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name with a slash, like the name of an API key", `{"users":[{"name":"a/b","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name with a line feed", `{"users":[{"name":"a\n","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name of 128 characters", fmt.Sprintf(`{"users":[{"name":%q,"password":"twelve-chars"}]}`, strings.Repeat("a", 128)), ""),
	Entry("of a name of 129 characters", fmt.Sprintf(`{"users":[{"name":%q,"password":"twelve-chars"}]}`, strings.Repeat("a", 129)), ".users[0].name"),
	Entry("of two users with the same name", `{"users":[{"name":"a","password":"twelve-chars"},{"name":"a","password":"twelve-chars"}]}`, ".users[1].name"),
	Entry("without users", `{"users":[]}`, ".users"),
	Entry("of the maximum number of users", `{"users":[`+users(1000)+`]}`, ""),
	Entry("of one user too many", `{"users":[`+users(1001)+`]}`, ".users"),
)

func users(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"u%d","password":{"secret":"x"}}`, i)
	}
	return strings.Join(list, ",")
}
