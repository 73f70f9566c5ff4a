package crd_test

import (
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// withoutValues returns a copy of a document without secrets, as GET /config shows it.
func withoutValues(doc *document.Document) *document.Document {
	out := &document.Document{}
	for _, item := range doc.Items {
		c := *item
		switch o := c.Object.(type) {
		case *model.Secret:
			s := *o
			s.Cert, s.PrivateKey, s.Value = "", "", ""
			c.Object = &s
		case *model.Filter:
			f := *o
			f.Config = model.JSON(strings.ReplaceAll(string(f.Config), `"a <text> & more"`, `"`+model.Redacted+`"`))
			c.Object = &f
		}
		out.Items = append(out.Items, &c)
	}
	return out
}

// seeds returns how many configurations to try: GATEHOUSE_TEST_SEEDS, if it is set.
func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("GATEHOUSE_TEST_SEEDS"), 10, 64); err == nil {
		return n
	}
	return 100
}

var _ = Describe("A random configuration", func() {
	It("survives the round trip through Kubernetes, with the contents of its secrets and without", func() {
		for seed := range seeds() {
			doc := newMaker(seed).document()
			want := encode(doc)
			objects := exported(doc, crd.ExportOptions{Namespace: "shop", Values: true})
			Expect(exported(doc, crd.ExportOptions{Namespace: "shop", Values: true})).To(Equal(objects), "seed %d", seed)
			got, warnings := imported(objects, crd.ImportOptions{Values: true})
			Expect(got).To(Equal(want), "seed %d: of\n%s", seed, objects)
			Expect(warnings).To(BeEmpty(), "seed %d", seed)

			bare := withoutValues(doc)
			objects = exported(bare, crd.ExportOptions{Namespace: "shop"})
			for _, secret := range []string{"its key", "a <text> & more", "with a line feed"} {
				Expect(objects).NotTo(ContainSubstring(secret))
			}
			got, warnings = imported(objects, crd.ImportOptions{})
			Expect(got).To(Equal(encode(bare)), "seed %d: of\n%s", seed, objects)
			Expect(warnings).To(BeEmpty(), "seed %d", seed)
		}
	})
})
