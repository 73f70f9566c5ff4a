package testkit_test

import (
	"context"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A Kubernetes API", func() {
	It("keeps its data and its address across an outage, and lets each user do what the rules allow", func(ctx context.Context) {
		k, err := testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{Audit: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return k.End() })
		Expect(k.Kubectl(ctx, "version")).To(ContainSubstring("Server Version: v1.36.3"))
		Expect(k.Namespace(ctx, "shop", "pod-security.kubernetes.io/enforce=restricted")).To(Succeed())
		Expect(k.Apply(ctx, `
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: shop}
stringData: {text: hello}
`)).To(Equal("secret/key created\n"))

		By("permissions")
		get := testkit.KubernetesRule{Resources: []string{"secrets"}, Verbs: []string{"get"}}
		list := testkit.KubernetesRule{Namespace: "shop", Resources: []string{"secrets"}, Verbs: []string{"list"}}
		user, err := k.User(ctx, "reader", get)
		Expect(err).NotTo(HaveOccurred())
		account, err := k.ServiceAccount(ctx, "shop", "lister", list)
		Expect(err).NotTo(HaveOccurred())
		read := []string{"get", "secret", "key", "--namespace", "shop", "--output", "name", "--kubeconfig"}
		readAll := []string{"get", "secrets", "--namespace", "shop", "--output", "name", "--kubeconfig"}
		Expect(k.Kubectl(ctx, append(read, user)...)).To(Equal("secret/key\n"))
		Expect(k.Kubectl(ctx, append(readAll, account)...)).To(Equal("secret/key\n"))
		_, err = k.Kubectl(ctx, append(readAll, user)...)
		Expect(err).To(MatchError(ContainSubstring(`secrets is forbidden: User "reader" cannot list resource "secrets"`)))
		_, err = k.Kubectl(ctx, append(read, account)...)
		Expect(err).To(MatchError(ContainSubstring(`User "system:serviceaccount:shop:lister" cannot get resource "secrets"`)))

		By("admission")
		_, err = k.Apply(ctx, `
apiVersion: v1
kind: Pod
metadata: {name: bare, namespace: shop}
spec: {containers: [{name: bare, image: "bare:1"}]}
`)
		Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))

		By("an outage")
		Expect(k.Stop()).To(Succeed())
		_, err = k.Kubectl(ctx, append(read, user)...)
		Expect(err).To(MatchError(ContainSubstring("was refused")))
		Expect(k.Start(ctx)).To(Succeed())
		Expect(k.Kubectl(ctx, append(read, user)...)).To(Equal("secret/key\n"))
		Expect(k.Kubectl(ctx, append(readAll, account)...)).To(Equal("secret/key\n"))

		By("the audit log")
		Eventually(func() (string, error) {
			b, err := os.ReadFile(k.AuditLog)
			return string(b), err
		}).Should(ContainSubstring(`"verb":"get","user":{"username":"reader"`))
	}, NodeTimeout(3*time.Minute))
})
