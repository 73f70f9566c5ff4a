package e2e_test

import (
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Users of htpasswd", func() {
	// What htpasswd -nbs prints for these names and the passwords below.
	const (
		ann = "ann:{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ=\n"
		bob = "bob:{SHA}GOSS6TAbppA5uAzYi+buQhPAx1g=\n"
		cay = "cay:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n"
	)
	login := func(name, password string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
	}

	It("keep their passwords, become consumers, and nothing shows their hashes", func() {
		g, gw, _ := shop("--access-log", "json")
		c := cliOf(g)
		whole := []string{"import", "htpasswd", document(ann + cay + bob), "--filter", "staff", "--consumers", "-o", "table"}
		code, out, told := c.run(whole...)
		Expect([]any{code, out}).To(Equal([]any{1, ""}))
		Expect(told).To(And(ContainSubstring("\n  line 2: cay: the password is in a form that Envoy does not verify: bcrypt."), HaveSuffix("With --lenient the rest is imported.\n")))
		Expect(read(g.API, "/filter")).NotTo(ContainSubstring("staff"))

		lenient := append(whole, "--lenient")
		Expect(c.good(append(lenient, "--dry-run")...)).To(HaveSuffix("3 to create, 0 to update, 0 to delete, 0 unchanged\n"))
		Expect(read(g.API, "/filter")).NotTo(ContainSubstring("staff"))
		post(g.API, "/consumer", "Consumer_name=ann", "Consumer_groups=admins", `Consumer_credentials={"keys":["partners/ann"]}`)
		code, out, told = c.run(lenient...)
		Expect(code).To(BeZero(), told)
		Expect(told).To(And(ContainSubstring("warning: line 2: cay: "), Not(ContainSubstring("default"))))
		Expect(out).To(ContainSubstring("2 created, 1 updated, 0 deleted, 0 unchanged"))
		Expect(c.good(lenient...)).To(ContainSubstring("0 created, 0 updated, 0 deleted, 3 unchanged"))

		post(g.API, "/filter", "Filter_name=known", "Filter_type=http_filter_consumer", "Filter_config={}")
		post(g.API, "/service/shop/filter/staff")
		post(g.API, "/service/shop/filter/known?wait=applied")
		Eventually(gw.answers).WithArguments("shop.example", "/").Should(Equal("401"))
		for _, try := range []struct{ name, password, want string }{
			{"ann", "correct-horse-battery", "ann admins"},
			{"bob", "another-long-word", "bob"},
			{"ann", "another-long-word", "401"},
			{"ann", "{SHA}+Xl5/0SpoaQQX0uub+gJcV4KCoQ=", "401"},
			{"cay", "correct-horse-battery", "401"},
		} {
			a, err := gw.send("GET", "shop.example", "/who", login(try.name, try.password))
			Expect(err).NotTo(HaveOccurred())
			said := strings.TrimSpace(a.Echo.Headers.Get("X-Consumer-Name") + " " + a.Echo.Headers.Get("X-Consumer-Groups"))
			if a.Status != 200 {
				said = "401"
			}
			Expect(said).To(Equal(try.want), "%+v", try)
		}
		Expect(read(g.API, "/consumer/ann")).To(ContainSubstring("partners/ann"))
		for _, path := range []string{"/filter/staff", "/config", "/revision", "/revision/11"} {
			Expect(read(g.API, path)).NotTo(ContainSubstring("+Xl5/0"), path)
		}
		Expect(strings.Join(g.Stdout.Lines(), "") + g.Stderr.String() + out + told).NotTo(ContainSubstring("+Xl5/0"))
	})
})
