package crd_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Objects in a cluster", func() {
	It("are accepted by a real API server, and come back as the same configuration", func(ctx context.Context) {
		api, err := testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return api.End() })
		const crds = "../../../charts/gatehouse/crds"
		Expect(api.Kubectl(ctx, "apply", "--server-side", "-f", crds)).NotTo(BeEmpty())
		Expect(api.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", crds)).NotTo(BeEmpty())
		Eventually(ctx, func() (string, error) {
			return api.Kubectl(ctx, "api-resources", "--cached=false", "--categories=gatehouse", "--output=name")
		}).Should(ContainSubstring("routefilters"))

		var objects strings.Builder
		const documents = 20
		for seed := range uint64(documents) {
			namespace := fmt.Sprintf("n%d", seed)
			Expect(api.Namespace(ctx, namespace)).To(Succeed())
			objects.WriteString(exported(newMaker(seed).document(), crd.ExportOptions{Namespace: namespace, Values: true}))
		}
		Expect(api.Apply(ctx, objects.String(), "--server-side")).NotTo(BeEmpty())
		for seed := range uint64(documents) {
			stored, err := api.Kubectl(ctx, "get", "gatehouse,services,endpointslices,secrets,configmaps", "--namespace", fmt.Sprintf("n%d", seed), "--output", "yaml")
			Expect(err).NotTo(HaveOccurred())
			got, warnings := imported(stored, crd.ImportOptions{Values: true})
			Expect(got).To(Equal(encode(newMaker(seed).document())), "seed %d", seed)
			Expect(warnings).To(BeEmpty(), "seed %d", seed)
		}
	}, NodeTimeout(5*time.Minute))
})
