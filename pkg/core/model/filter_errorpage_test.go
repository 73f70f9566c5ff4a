package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("Pages in place of errors", func() {
	It("are for the statuses that no page before them has", func() {
		f, _ := (&model.Filter{Name: "f", Type: model.FilterErrorPage, Config: `{"pages":[{"statuses":["502","598-599"],"text":"a"},{"statuses":["501-503"],"text":"b"},{"statuses":["404"],"text":"c"}]}`}).Parse().Spec.(*model.ErrorPageFilter)
		Expect(f.StatusesOf(0)).To(Equal([]int{502, 598, 599}))
		Expect(f.StatusesOf(1)).To(Equal([]int{501, 503}))
		Expect(f.StatusesOf(2)).To(Equal([]int{404}))
		Expect(f.Advice()).To(Equal([]string{"pages[1] has status 502, and so has a page before it, which is used"}))
	})

	It("are at most 128 KiB together", func() {
		full := `{"statuses":["404"],"text":"` + strings.Repeat("a", 65536) + `"}`
		errorsOf := func(config string) []model.FieldError {
			return (&model.Filter{Name: "f", Type: model.FilterErrorPage, Config: model.JSON(config)}).Validate()
		}
		Expect(errorsOf(fmt.Sprintf(`{"pages":[%s,%s]}`, full, full))).To(BeEmpty())
		Expect(errorsOf(fmt.Sprintf(`{"pages":[%s,%s,{"statuses":["500"],"text":"a"}]}`, full, full))).To(HaveExactElements(HaveField("Message",
			"have 131073 bytes together; at most 131072 are allowed, because every Envoy holds them")))
	})
})
