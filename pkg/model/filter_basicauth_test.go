package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = DescribeTable("A configuration with passwords", func(config, field string) {
	Expect(refusedField(model.FilterBasicAuth, config)).To(Equal(field))
},
	Entry("of 12 characters", `{"users":[{"name":"a","password":"twelve-chars"}]}`, ""),
	Entry("of 12 characters that are more bytes", `{"users":[{"name":"a","password":"zwölf-Länge!"}]}`, ""),
	Entry("of 11 characters", `{"users":[{"name":"a","password":"twelve-char"}]}`, ".users[0].password"),
	Entry("of 256 bytes", fmt.Sprintf(`{"users":[{"name":"a","password":%q}]}`, strings.Repeat("a", 256)), ""),
	Entry("of 257 bytes", fmt.Sprintf(`{"users":[{"name":"a","password":%q}]}`, strings.Repeat("a", 257)), ".users[0].password"),
	Entry("with a control character", `{"users":[{"name":"a","password":"twelve\u0000chars"}]}`, ".users[0].password"),
	Entry("in a secret", `{"users":[{"name":"a","password":{"secret":"x"}}]}`, ""),
	Entry("in a secret without a name", `{"users":[{"name":"a","password":{"secret":"a b"}}]}`, ".users[0].password.secret"),
	Entry("that are sealed, or shown", `{"users":[{"name":"a","password":"sealed:v1:x"},{"name":"b","password":"<redacted>"}]}`, ""),
	Entry("under a key in other letters", `{"users":[{"name":"a","PASSWORD":"twelve-chars"}]}`, ".users[0].PASSWORD"),
	Entry("in a list in other letters", `{"Users":[{"name":"a","password":"twelve-chars"}]}`, ".Users"),
	Entry("of a name with all that it may have", `{"users":[{"name":"A.z_0-9@+","password":"twelve-chars"}]}`, ""),
	Entry("of a name with a colon", `{"users":[{"name":"a:b","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name with a slash, as the holder of a key has", `{"users":[{"name":"a/b","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name with a line feed", `{"users":[{"name":"a\n","password":"twelve-chars"}]}`, ".users[0].name"),
	Entry("of a name of 128 characters", fmt.Sprintf(`{"users":[{"name":%q,"password":"twelve-chars"}]}`, strings.Repeat("a", 128)), ""),
	Entry("of a name of 129 characters", fmt.Sprintf(`{"users":[{"name":%q,"password":"twelve-chars"}]}`, strings.Repeat("a", 129)), ".users[0].name"),
	Entry("of two users of one name", `{"users":[{"name":"a","password":"twelve-chars"},{"name":"a","password":"twelve-chars"}]}`, ".users[1].name"),
	Entry("of nobody", `{"users":[]}`, ".users"),
	Entry("of as many as can be", `{"users":[`+users(1000)+`]}`, ""),
	Entry("of one more", `{"users":[`+users(1001)+`]}`, ".users"),
)

func users(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"u%d","password":{"secret":"x"}}`, i)
	}
	return strings.Join(list, ",")
}
