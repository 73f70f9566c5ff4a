package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("An Envoy whose listeners lack the filters of logins", func() {
	It("never receives a host that requires a login, which would let everybody in", func() {
		s := plan.NewStream(plan.Options{WarmBound: 20 * time.Second})
		now := time.Unix(1_800_000_000, 0)
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		staff := login{name: "staff"}
		s.Want(guarded(1, loginHost("shop", staff, false), openHost("blog", 1)))
		var hosts map[string]guardedHost
		pass := func() {
			messages, _ := s.Next(now)
			for _, m := range messages {
				if m.Type == snapshot.RouteType {
					hosts, _ = readHosts(m.Resources[0])
				}
				s.Ack(m.Nonce)
			}
		}
		s.Subscribe(snapshot.SecretType, staff.secrets(), nil)
		for range 5 {
			pass()
			now = now.Add(time.Minute)
		}
		Expect(hosts).To(HaveKey("blog"))
		Expect(hosts["shop"].says).NotTo(HavePrefix("login"))
		By("until it has subscribed to them")
		s.Subscribe(snapshot.ExtensionType, []string{"jwt"}, nil)
		for range 3 {
			pass()
		}
		Expect(hosts["shop"].says).To(HavePrefix("login staff"))
	})
})
