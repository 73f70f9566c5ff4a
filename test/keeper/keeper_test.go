package keeper_test

import (
	"fmt"
	"math/rand/v2"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// filters are logins; their numbers determine the messages about them.
type filters struct {
	*gateway
	*answers
	editions, keys, contents map[string]int
}

func newFilters(g *gateway) *filters {
	return &filters{g, &answers{hosts: map[string][]period{}}, map[string]int{}, map[string]int{}, map[string]int{}}
}

// set sets the answer of a host, and waits until the Envoy gives it.
func (f *filters) set(name string, does int) {
	GinkgoHelper()
	f.change(name+".test", does)
	switch does {
	case gone:
		f.builder.SetHost(name, nil)
	case serves:
		f.builder.SetHost(name, open(name, "hello"))
	case asks:
		f.builder.SetHost(name, closed(name, name, f.editions[name], f.keys[name], f.contents[name]))
	}
	f.apply()
	f.settle(name + ".test")
}

func names() (names, hosts []string) {
	for i := range 8 {
		names = append(names, fmt.Sprintf("login%d", i))
		hosts = append(hosts, names[i]+".test")
	}
	return names, hosts
}

var _ = Describe("a real Envoy under load", func() {
	It("survives, and answers correctly, while logins are added, changed and removed 300 times", func() {
		g := newGateway()
		f := newFilters(g)
		list, hosts := names()
		g.publish()
		g.run()
		f.set("shop", serves)
		traffic := f.load(g, append(hosts, "shop.test"))
		rng := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a seeded test
		for range 300 {
			name := list[rng.IntN(len(list))]
			switch rng.IntN(8) {
			case 0, 1:
				f.set(name, gone)
				continue
			case 2:
				f.set(name, serves)
				continue
			case 3:
				f.editions[name]++
			case 4:
				f.keys[name]++
			case 5:
				f.contents[name]++
			}
			f.set(name, asks)
		}
		report := traffic.Stop()
		GinkgoWriter.Println(report)
		g.expectAlive()
		Expect(report.Failures).To(BeEmpty(), report.String())
	})

	It("survives while the control plane is restarted 50 times, with logins that only it still has", func() {
		g := newGateway()
		f := newFilters(g)
		list, hosts := names()
		g.publish()
		g.run()
		f.set("shop", serves)
		traffic := f.load(g, append(hosts, "shop.test"))
		for i := range 50 {
			retired, changed := list[i%len(list)], list[(i+1)%len(list)]
			f.contents[retired]++ // in time it is one that the Envoy has had
			f.set(retired, asks)
			f.set(retired, gone)
			g.stop()
			g.start()
			g.publish()
			f.editions[changed]++
			// The Envoy may not be back yet. What it had of the host is then not known, so that
			// nothing can replace it until the new secrets have arrived (ADR 0056).
			f.change(changed+".test", unavailable)
			f.set(changed, asks)
			f.set("shop", []int{serves, gone}[i%2])
		}
		report := traffic.Stop()
		GinkgoWriter.Println(report)
		g.expectAlive()
		Expect(report.Failures).To(BeEmpty(), report.String())
	})
})
