package snapshot_test

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("The certificates for a host name", func() {
	// parts returns a host with certificates, each with the name of a secret.
	parts := func(name string, order int64, rank int, certificates ...string) *snapshot.Parts {
		p := &snapshot.Parts{Host: host(name), Domain: name, Order: order}
		for i := 0; i < len(certificates); i += 2 {
			p.Certificates = append(p.Certificates, must(snapshot.NewCertificate(
				&tlsv3.Secret{Name: certificates[i]}, rank, snapshot.ObjectRef{Kind: "secret", Name: certificates[i+1]})))
		}
		return p
	}
	secrets := func(s *snapshot.Snapshot, asked string) (list []string) {
		for _, c := range s.Candidates(asked) {
			list = append(list, c.Resource().Objects[0].Name)
		}
		return list
	}

	It("are in order of precedence: the name itself, the rank, the older host, the host's own order", func() {
		b := snapshot.NewBuilder(head(), nil)
		b.SetHost("young", parts("young", 3, 1, "a.test", "young"))
		b.SetHost("old", parts("old", 2, 1, "a.test", "old1", "a.test", "old2"))
		b.SetHost("exact", parts("exact", 9, 0, "a.test", "exact"))
		b.SetHost("wide", parts("wide", 1, 0, "*.test", "wide"))
		first := b.Snapshot(1)
		Expect(secrets(first, "A.test")).To(Equal([]string{"exact", "old1", "old2", "young", "wide"}))
		Expect(secrets(first, "b.test")).To(Equal([]string{"wide"}))
		Expect(secrets(first, "a.b.test")).To(BeEmpty())
		Expect(first.CertificateNames(map[string]bool{"old2": true, "wide": true, "other": true})).To(Equal(
			map[string][]string{"old2": {"a.test"}, "wide": {"*.test"}}))

		By("until their host is deleted, or is built again")
		b.SetHost("exact", nil)
		b.SetHost("old", parts("old", 2, 1, "a.test", "old2"))
		b.SetHost("wide", nil)
		second := b.Snapshot(2)
		Expect(secrets(second, "a.test")).To(Equal([]string{"old2", "young"}))
		b.SetHost("young", nil)
		b.SetHost("old", nil)
		last := b.Snapshot(3)
		Expect(last.Certificates).To(BeEmpty())
		Expect(last.Beaten).To(BeEmpty())
		By("a snapshot does not change")
		Expect(secrets(first, "a.test")).To(Equal([]string{"exact", "old1", "old2", "young", "wide"}))
		Expect(secrets(second, "a.test")).To(Equal([]string{"old2", "young"}))
	})
})
