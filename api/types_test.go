package api_test

import (
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The types of filters and global configs", func() {
	filters, globals := model.ConfigTypes(model.KindFilter), model.ConfigTypes(model.KindGlobalConfig)

	It("are the same as in the OpenAPI document", func() {
		schemas := load().Components.Schemas
		Expect(schemas["FilterType"].Value.Enum).To(ConsistOf(model.WrittenTypes(model.KindFilter)))
		Expect(schemas["GlobalconfigType"].Value.Enum).To(ConsistOf(model.WrittenTypes(model.KindGlobalConfig)))
		var kinds []string
		for _, kind := range model.Kinds() {
			kinds = append(kinds, string(kind))
		}
		Expect(schemas["Kind"].Value.Enum).To(ConsistOf(kinds))
	})

	It("are the same as in docs/api.md, with what they can be attached to", func() {
		page, err := os.ReadFile("../docs/api.md")
		Expect(err).NotTo(HaveOccurred())
		rows := map[string]string{}
		for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+_[a-z_]+)` \\| `[a-z_]+` \\| ([a-z, ]+) \\|").FindAllStringSubmatch(string(page), -1) {
			rows[row[1]] = row[2]
		}
		want := map[string]string{}
		for _, name := range filters {
			var on []string
			for _, kind := range []model.Kind{model.KindRoute, model.KindService, model.KindProxy} {
				if (&model.Filter{Type: name}).FitsOn(kind) {
					on = append(on, string(kind))
				}
			}
			want[name] = strings.Join(on, ", ")
		}
		for _, name := range globals {
			want[name] = "proxy"
		}
		Expect(rows).To(Equal(want))
	})
})
