package storetest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// noteSpecs check a store against store.Notes.
func noteSpecs(h *harness) {
	It("are stored separately from the configuration", func(ctx SpecContext) {
		notes := h.store.(store.Notes)
		Expect(notes.Note(ctx, "a")).To(BeEmpty())
		Expect(notes.SetNote(ctx, "a", "one")).To(Succeed())
		Expect(notes.SetNote(ctx, "b", "other")).To(Succeed())
		Expect(notes.SetNote(ctx, "a", `{"two":"ü"}`)).To(Succeed())
		Expect(notes.Note(ctx, "a")).To(Equal(`{"two":"ü"}`))
		Expect(notes.Note(ctx, "b")).To(Equal("other"))
		change, err := h.store.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		Expect(change.Revision).To(BeZero())
		Expect(h.store.Changed()).NotTo(Receive())
	})
}
