package attack_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// page is what a browser adds to the requests of a web page.
type page struct {
	name    string
	headers []string
}

// evilPages returns pages that must not change anything.
func evilPages() []page {
	return []page{
		{"of another origin", []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site"}},
		{"at a name that leads to this machine", []string{"Host: evil.example", "Origin: http://evil.example", "Sec-Fetch-Site: same-origin"}},
		{"of another origin, in an old browser", []string{"Origin: http://evil.example"}},
		{"of no origin, such as a sandboxed frame", []string{"Origin: null"}},
		{"of another port", []string{"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"}},
		{"at a name that ends like this machine's", []string{"Host: evil-localhost", "Origin: http://evil-localhost"}},
		{"at a name that begins like an address", []string{"Host: 127.0.0.1.evil.example", "Origin: http://127.0.0.1.evil.example"}},
		{"at a name with a port", []string{"Host: evil.example:1323", "Origin: http://evil.example:1323"}},
	}
}

var _ = Describe("A web page on the machine", func() {
	It("changes nothing through the API", func(ctx SpecContext) {
		for _, p := range some(2, evilPages()) {
			for _, contentType := range []string{"text/plain", "application/x-www-form-urlencoded"} {
				headers := append([]string{"Content-Type: " + contentType}, p.headers...)
				a := try(ctx, gw.API, http.MethodPost, "/service", "Service_Name=evil&fqdn=evil.example", headers...)
				Expect(a.Status).To(Equal(http.StatusForbidden), "a page %s: %s", p.name, a.Body)
			}
		}
		a := try(ctx, gw.API, http.MethodGet, "/service/evil", "")
		Expect(a.Status).To(Equal(http.StatusNotFound))
	}, SpecTimeout(time.Minute))
})
