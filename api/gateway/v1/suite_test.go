package v1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestKinds(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Kinds of cluster mode")
}

const crds = "../../../charts/gatehouse/crds"

// api is the Kubernetes of the suite, which has the CustomResourceDefinitions.
var api *testkit.Kubernetes

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	api, err = testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return api.End() })
	Expect(api.Kubectl(ctx, "apply", "--server-side", "-f", crds)).To(ContainSubstring("gatewayhosts.gateway.gatehouse.dev serverside-applied"))
	Expect(api.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "-f", crds)).To(ContainSubstring("condition met"))
	Eventually(ctx, func() (string, error) {
		return api.Kubectl(ctx, "api-resources", "--cached=false", "--categories=gatehouse", "--output=name")
	}).Should(Equal(`consumers.gateway.gatehouse.dev
gatewayhosts.gateway.gatehouse.dev
globalconfigs.gateway.gatehouse.dev
referencegrants.gateway.gatehouse.dev
routefilters.gateway.gatehouse.dev
`))
}, NodeTimeout(3*time.Minute))

// refused applies an object, which the API server must refuse, and returns what kubectl
// says about each field.
func refused(ctx context.Context, object string) []string {
	GinkgoHelper()
	_, err := api.Apply(ctx, object, "--dry-run=server")
	Expect(err).To(HaveOccurred(), "it was accepted: %s", object)
	_, text, found := strings.Cut(err.Error(), " is invalid: ")
	Expect(found).To(BeTrue(), "%s", err)
	var said []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n* ") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "* ")
		if line != "" && !strings.HasPrefix(line, "<nil>: Invalid value: null: some validation rules were not checked") {
			said = append(said, line)
		}
	}
	return said
}

// readFile returns a file of testdata.
func readFile(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
