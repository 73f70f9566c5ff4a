package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// toldOf returns the code of an explanation, and what it says; more are parameters of the query.
func toldOf(api testkit.API, target string, more ...string) (code, message string) {
	GinkgoHelper()
	var answer struct {
		Data struct {
			Explain []struct {
				Code, Message, Service, Basis string
				Forward                       *struct{ Clusters []struct{ Name string } }
			} `json:"core_db_explain"`
		}
	}
	text := read(api, "/proxy/gw/explain?"+strings.Join(append(more, "url="+url.QueryEscape(target)), "&"))
	Expect(json.Unmarshal([]byte(text), &answer)).To(Succeed())
	Expect(answer.Data.Explain).To(HaveLen(1))
	e := answer.Data.Explain[0]
	Expect(e.Basis).To(Equal("envoys"))
	return e.Code, e.Message
}

var _ = Describe("explain for connections", func() {
	It("says what Envoy does", func() {
		s, _ := secure()
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"red.test"}})
		Expect(err).NotTo(HaveOccurred())
		cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
		Expect(err).NotTo(HaveOccurred())
		addTalker(s.api, talk("red", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}))
		addTalker(s.api, talk("plain", nil))
		addTalker(s.api, echoDatagrams("dns"))
		s.serve("shop", "shop.test", "shop.test")
		addL4(s.api, "red", "tls", 0, "red.test", "red")
		tcp, own, udp, empty := freePort(), freePort(), freeDatagramPort(), freePort()
		post(s.api, "/filter", "Filter_name=here", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["127.0.0.0/8"],"deny":["127.0.0.9"]}`)
		addL4(s.api, "db", "tcp", tcp, "*", "plain")
		addL4(s.api, "own", "tls", own, "red.test", "red")
		addL4(s.api, "dns", "udp", udp, "*", "dns")
		addL4(s.api, "empty", "tcp", empty, "*")
		for _, name := range []string{"db", "dns"} {
			applied(s.api, http.MethodPost, "/service/"+name+"/filter/here")
		}
		client := func(name string) *tls.Config {
			return &tls.Config{ServerName: name, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}
		}
		for _, one := range []struct{ target, code, has string }{
			{fmt.Sprintf("tcp://gw:%d", tcp), "forwarded", "service db: it goes to plain"},
			{fmt.Sprintf("tcp://gw:%d", empty), "closed", "service empty cannot work"},
			{fmt.Sprintf("tcp://gw:%d", own), "closed", "no service of the port has the name"},
			{fmt.Sprintf("tcp://gw:%d", freePort()), "no_listener", "no service of such a mode has the port"},
			{"tls://red.test", "forwarded", "service red: it goes to red"},
			{fmt.Sprintf("tls://RED.test:%d", s.httpsPort), "forwarded", "service red: it goes to red"},
			{fmt.Sprintf("tls://red.test:%d", own), "forwarded", "service own: it goes to red"},
			{fmt.Sprintf("tls://green.test:%d", own), "closed", "no service of the port has the name"},
			{"tls://shop.test", "no_host", "explain https://shop.test/"},
			{"https://red.test/cart", "passed_on", "service red of mode tls has the name red.test"},
			{"https://shop.test/", "forwarded", "service shop"},
			{"http://shop.test/", "forwarded", "service shop"},
			{fmt.Sprintf("udp://gw:%d", udp), "forwarded", "service dns: it goes to dns"},
		} {
			code, message := toldOf(s.api, one.target)
			Expect(code+": "+message).To(And(HavePrefix(one.code+": "), ContainSubstring(one.has)), one.target)
		}
		for _, target := range []string{fmt.Sprintf("tcp://gw:%d", tcp), fmt.Sprintf("udp://gw:%d", udp)} {
			code, message := toldOf(s.api, target, "address=127.0.0.9")
			Expect(code+": "+message).To(HavePrefix("address_refused: vh_filter_ipaccess here does not allow 127.0.0.9"), target)
		}
		Expect(who(tcp, nil)).To(Equal("plain"))
		Expect(who(own, client("red.test"))).To(Equal("red"))
		Expect(who(s.httpsPort, client("red.test"))).To(Equal("red"))
		Expect(who(empty, nil)).To(Or(ContainSubstring("EOF"), ContainSubstring("reset")))
		a, err := s.api.Get(limit(), "/proxy/gw/explain?url=tcp://gw")
		Expect(err).NotTo(HaveOccurred())
		Expect(strconv.Itoa(a.Status) + a.Body).To(And(HavePrefix("400"), ContainSubstring("is not a host and a port")))
	})
})
