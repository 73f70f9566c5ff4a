package engine_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/engine"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = Describe("The rate limits of a build", func() {
	It("are known from the first change on, also where there are none: an engine opens its ports with them", func() {
		build, err := engine.NewBuild(compile.Settings{})
		Expect(err).NotTo(HaveOccurred())
		Expect(build.Apply(model.Change{}).RateLimits).To(And(BeEmpty(), Not(BeNil())))
		Expect(build.Apply(model.Change{Revision: 1}).RateLimits).To(BeNil())
	})
})
