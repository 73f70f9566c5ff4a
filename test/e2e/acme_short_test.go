package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// renewals is how many renewals a spec waits for: GATEHOUSE_TEST_RENEWALS, or some.
func renewals() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_RENEWALS")); err == nil {
		return n
	}
	return 3
}

var _ = Describe("Certificates that are valid for seconds", func() {
	// The clocks of the authority, of the gateway and of the clients are the real ones: what is short is the life.
	It("are renewed under traffic without a gap, and open connections stay", func() {
		s := order(testkit.PebbleOptions{Profiles: map[string]int{"shortlived": 15}}, `,"profile":"shortlived"`)
		s.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, testkit.PebbleRenewalInfo) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			now := time.Now().UTC()
			_, _ = fmt.Fprintf(w, `{"suggestedWindow":{"start":%q,"end":%q}}`,
				now.Add(6*time.Second).Format(time.RFC3339Nano), now.Add(8*time.Second).Format(time.RFC3339Nano))
			return true
		})
		automatic(s.api, "shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return s.serialOf("shop.test") }).Should(MatchRegexp("^[0-9a-f]+$"))
		stop := s.secureTraffic(100, func() testkit.Target { return testkit.Target{Host: "shop.test", Path: "/"} })
		open := s.openOnes("shop.test")
		open.expectOpen()
		before := listenerChanges(adminOf(s.Gatehouse))
		for range renewals() {
			serial := s.serialOf("shop.test")
			Eventually(func() string { return s.serialOf("shop.test") }, orderTime).ShouldNot(Equal(serial))
			open.expectOpen()
		}
		stop()
		Expect(listenerChanges(adminOf(s.Gatehouse))).To(Equal(before))
		Expect(s.pebble.Count(testkit.PebbleNewOrder)).To(BeNumerically("~", renewals()+1, 1))
	})
})
