package server_test

import (
	"fmt"
	"log/slog"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("the secrets of logins", func() {
	It("are sent immediately to an Envoy that requests each one separately, except those that do not exist", func() {
		const logins = 300
		b := snapshot.NewBuilder(nil, nil)
		var secrets []*snapshot.Resource
		for i := range logins {
			r, err := snapshot.NewSecret(&tlsv3.Secret{Name: fmt.Sprintf("login/filter/f%d/client", i)})
			Expect(err).NotTo(HaveOccurred())
			secrets = append(secrets, r)
		}
		b.SetListeners(nil, snapshot.Named{Secrets: secrets})
		s := server.New(server.Options{Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": b.Snapshot(1)})
		c := dialClient(serveGRPC(s.GRPC()))
		ask := func(filter string) {
			c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.SecretType, ResourceNamesSubscribe: []string{"login/filter/" + filter + "/client"}})
		}
		for i := range logins {
			ask(fmt.Sprint("f", i))
		}
		Eventually(func() int { return len(c.came) }).WithTimeout(10 * time.Second).Should(Equal(logins))
		for range logins {
			Expect(c.next().GetResources()).To(HaveLen(1))
		}
		ask("gone")
		ask("f0")
		Expect(c.next().GetResources()).To(HaveLen(1), "of the one that exists")
	})
})
