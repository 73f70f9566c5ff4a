package client_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// The package must not import the model; this holds its copy to it.
var _ = Describe("Kinds", func() {
	It("agree with the model's table of kinds", func() {
		said := map[string]client.Kind{}
		for _, k := range client.Kinds() {
			said[k.Name] = k
		}
		for _, kind := range model.Kinds() {
			row := kind.Row()
			if row.Attaches() != "" {
				continue
			}
			k, known := said[string(kind)]
			Expect(known).To(BeTrue(), "client.Kinds lacks %s", kind)
			delete(said, string(kind))
			Expect(k.NameField).To(Equal(strings.ToLower(form.Fields(kind)[0].Name)))
			Expect(k.In).To(Equal(string(row.Owner())))
			var attachTo []string
			for _, user := range kind.UserKinds() {
				if user.Row().Attaches() == kind {
					attachTo = append(attachTo, string(user.Row().Owner()))
				}
			}
			Expect(k.AttachTo).To(Equal(attachTo), "%s", kind)
			for _, column := range k.Columns {
				Expect(slices.ContainsFunc(form.Fields(kind), func(f form.Field) bool { return strings.EqualFold(f.Name, column) }) ||
					column == "not_after").To(BeTrue(), "%s has no field %s", kind, column)
			}
		}
		Expect(said).To(BeEmpty())
	})
})
