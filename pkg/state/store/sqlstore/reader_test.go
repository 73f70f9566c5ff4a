package sqlstore_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

var _ = DescribeTable("the end of a prefix", func(prefix, want string) {
	Expect(sqlstore.PrefixEnd(prefix)).To(Equal(want))
},
	Entry("a letter", "shop", "shoq"),
	Entry("two bytes", "shopÿ", "shopĀ"),
	Entry("the last character before the surrogates", "a\uD7FF", "a\uE000"),
	Entry("the last character", "a\U0010FFFF", "b"),
	Entry("only the last character", "\U0010FFFF", ""),
)
