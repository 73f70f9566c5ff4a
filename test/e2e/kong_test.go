package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kongFile has two services, consumers with keys and passwords, ACL groups and tiers. PORT is that of the backend.
const kongFile = `_format_version: "3.0"
services:
- name: shop
  url: http://127.0.0.1:PORT/api
  routes:
  - name: catalog
    hosts: [shop.test]
    paths: [/shop]
  - name: items
    hosts: [shop.test]
    paths: ['~/items/\d+$']
    methods: [GET]
    strip_path: false
  - name: admin
    hosts: [shop.test]
    paths: [/admin]
    strip_path: false
    preserve_host: true
    plugins:
    - name: acl
      config: {allow: [admins], deny: [suspended]}
  plugins:
  - name: key-auth
    config: {key_names: [apikey], hide_credentials: true}
  - name: rate-limiting
    config: {hour: 3, limit_by: consumer, policy: local}
- name: pages
  url: http://127.0.0.1:PORT
  routes:
  - name: pages
    paths: [/pages]
    plugins:
    - name: cors
      config: {origins: ["https://app.test"], methods: [GET, PUT], max_age: 600}
    - name: response-transformer
      config: {append: {headers: ["x-page:1"]}}
  - name: office
    paths: [/office]
    plugins:
    - name: ip-restriction
      config: {allow: [192.0.2.0/24]}
  - name: upload
    paths: [/upload]
    plugins:
    - name: request-size-limiting
      config: {allowed_payload_size: 1, size_unit: kilobytes}
  - name: staff
    hosts: [staff.test]
    paths: [/]
    plugins:
    - name: basic-auth
      config: {hide_credentials: true}
    - name: acl
      config: {allow: [admins]}
  - name: gone
    paths: [/gone]
    plugins:
    - name: request-termination
      config: {status_code: 410, message: gone}
  - name: signed
    paths: [/signed]
    plugins:
    - name: hmac-auth
  - name: tokens
    paths: [/tokens]
    plugins:
    - name: jwt
      config: {claims_to_verify: [exp], uri_param_names: []}
consumers:
- username: carl
  jwt_secrets: [{key: carls, secret: "0123456789abcdef0123456789abcdef"}]
- username: acme
  keyauth_credentials: [{key: acme-key}]
  acls: [{group: admins}]
  groups: [{name: gold}]
- username: globex
  keyauth_credentials: [{key: globex-key}, {key: globex-other}]
- username: mallory
  keyauth_credentials: [{key: mallory-key}]
  acls: [{group: admins}, {group: suspended}]
  plugins:
  - name: rate-limiting
    config: {hour: 100}
- username: ann
  basicauth_credentials: [{username: ann, password: correct-horse-battery}]
  acls: [{group: admins}]
- username: bob
  basicauth_credentials: [{username: bob, password: another-long-word}]
consumer_groups:
- name: gold
  plugins:
  - name: rate-limiting
    config: {hour: 6}
`

// sharedToken returns a token that is signed with HS256.
func sharedToken(issuer, key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(`{"iss":"`+issuer+`","exp":4102444800}`))
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

var _ = Describe("An imported file of Kong", func() {
	It("answers requests as Kong's documentation says, and what is not translated is named and closed", func() {
		g, gw := standalone()
		file := document(strings.ReplaceAll(kongFile, "PORT", fmt.Sprint(backend("blue").Port)))
		c := cliOf(g)
		code, text, told := c.run("import", "kong", file, "--proxy", "gw")
		Expect(code).To(Equal(1))
		Expect(told).To(ContainSubstring("warning: line 63: plugin hmac-auth (pages-signed): has no equivalent; its routes answer 503\n"))
		Expect(strings.Count(told, "warning: ")).To(Equal(5), "%s", told) // four keys
		for _, secret := range []string{"acme-key", "globex-key", "mallory-key", "correct-horse"} {
			Expect(told).NotTo(ContainSubstring(secret))
		}
		post(g.API, "/proxy", "Name=gw", "Listen_ip=127.0.0.1")
		c.good("apply", "-f", document(text), "--wait")

		key := func(name, secret string) string {
			return "Apikey: " + base64.StdEncoding.EncodeToString([]byte("kong/"+name+":"+secret))
		}
		acme, globex, other, mallory := key("acme-1", "acme-key"), key("globex-1", "globex-key"), key("globex-2", "globex-other"), key("mallory-1", "mallory-key")
		login := func(name, password string) string {
			return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
		}
		ann, bob := login("ann", "correct-horse-battery"), login("bob", "another-long-word")
		Eventually(func() string { return gw.answers("any.test", "/pages") }).Should(Equal("blue"))

		// Each line is a request with its answer: status, and where it is interesting the path and consumer at the backend.
		for i, r := range []struct {
			method, host, path, header, want string
		}{
			{"GET", "shop.test", "/shop", "", "401"},
			{"GET", "shop.test", "/shop", "Apikey: acme-key", "401"},
			{"GET", "shop.test", "/shop", key("acme-1", "wrong"), "401"},
			{"GET", "shop.test", "/shop", key("nobody-1", "acme-key"), "401"},
			{"GET", "shop.test", "/shop/a?x=1", globex, "200 /api/a?x=1 globex"},
			{"GET", "shop.test", "/shop", other, "200 /api/ globex"},
			{"GET", "shop.test", "/shop/b", globex, "200 /api/b globex"},
			{"GET", "shop.test", "/shop/b", globex, "429"}, // 3 an hour for each consumer, whatever key
			{"GET", "shop.test", "/shop/b", other, "429"},
			{"GET", "shop.test", "/items/7", other, "429"}, // the plugin of the service counts for all its routes
			{"GET", "shop.test", "/shop/c", acme, "200 /api/c acme"},
			{"GET", "shop.test", "/items/7", acme, "200 /api/items/7 acme"},
			{"POST", "shop.test", "/items/7", acme, "404"},
			{"GET", "shop.test", "/items/x", acme, "404"},
			{"GET", "shop.test", "/items/7/more", acme, "404"},
			{"GET", "shop.test", "/admin/users", acme, "200 /api/admin/users acme"},
			{"GET", "shop.test", "/admin/users", mallory, "403"}, // denied, although it is in an allowed group
			{"GET", "shop.test", "/admin/users", "", "401"},
			{"GET", "shop.test", "/shop", mallory, "200 /api/ mallory"},
			{"GET", "shop.test", "/shop", mallory, "200 /api/ mallory"},
			{"GET", "shop.test", "/shop", mallory, "200 /api/ mallory"},
			{"GET", "shop.test", "/shop", mallory, "200 /api/ mallory"}, // 100 an hour of its own
			{"GET", "shop.test", "/shop", acme, "200 /api/ acme"},
			{"GET", "shop.test", "/shop", acme, "200 /api/ acme"},
			{"GET", "shop.test", "/shop", acme, "200 /api/ acme"},
			{"GET", "shop.test", "/shop", acme, "429"}, // the tier gold has 6 an hour
			{"GET", "other.test", "/shop", acme, "404"},
			{"GET", "any.test", "/pages", "", "200 /"},
			{"GET", "any.test", "/pages/a", "", "200 /a"},
			{"GET", "shop.test", "/pages/a", "", "200 /a"}, // a route without hosts is for every host
			{"OPTIONS", "any.test", "/pages", "Origin: https://app.test", "200 /"},
			{"GET", "any.test", "/office", "", "403"},
			{"GET", "any.test", "/gone", "", "410"},
			{"GET", "any.test", "/signed", "", "503"},
			{"GET", "any.test", "/", "", "404"},
			{"GET", "any.test", "/tokens", "", "401"},
			{"GET", "any.test", "/tokens/a", "Authorization: Bearer " + sharedToken("carls", "0123456789abcdef0123456789abcdef"), "200 /a carl"},
			{"GET", "any.test", "/tokens/a", "Authorization: Bearer " + sharedToken("carls", "another-key-another-key-another-"), "401"},
			{"GET", "staff.test", "/x", "", "401"},
			{"GET", "staff.test", "/x", login("ann", "wrong"), "401"},
			{"GET", "staff.test", "/x", ann, "200 /x ann"},
			{"GET", "staff.test", "/x", bob, "403"},
			{"GET", "staff.test", "/pages/b", "", "401"}, // the route with a host comes first
		} {
			var headers []string
			if r.header != "" {
				headers = []string{r.header}
			}
			got, err := gw.send(r.method, r.host, r.path, append(headers, "X-Consumer-Username: root")...)
			Expect(err).NotTo(HaveOccurred())
			said := fmt.Sprint(got.Status)
			if got.Status == http.StatusOK {
				said += " " + got.Echo.Path
				if who := got.Echo.Headers.Get("X-Consumer-Username"); who != "" && who != "root" {
					said += " " + who
				}
			}
			Expect(said).To(Equal(r.want), "request %d: %s %s%s", i+1, r.method, r.host, r.path)
			Expect(got.Echo.Headers.Get("Apikey")).To(BeEmpty())
			Expect(got.Echo.Headers.Get("Authorization")).NotTo(HavePrefix("Basic"))
		}
		preflight, err := gw.send("OPTIONS", "any.test", "/pages", "Origin: https://app.test", "Access-Control-Request-Method: PUT")
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{preflight.Header.Get("Access-Control-Allow-Origin"), preflight.Header.Get("Access-Control-Max-Age"), preflight.Echo.Path}).
			To(Equal([]string{"https://app.test", "600", ""}))
		page := gw.get("any.test", "/pages", "Origin: https://app.test")
		Expect(page.Header.Get("Access-Control-Allow-Origin")).To(Equal("https://app.test"))
		Expect(page.Header.Get("X-Page")).To(Equal("1"))
	})
})
