package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// passwordsOf are the passwords of a filter by user, as who compiles it reads them.
func (a *api) passwordsOf(filter string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	Expect(a.store.Read(context.Background(), func(r store.Reader) error {
		f, err := store.Get[*model.Filter](r, model.FilterKey(filter))
		if err != nil {
			return err
		}
		for _, u := range f.Parse().Spec.(*model.BasicAuthFilter).Users {
			Expect(u.Password.Text).To(HavePrefix("sealed:v1:"))
			if found[u.Name], err = sealer.Unseal(u.Password.Text, "filter/"+filter+"/users["+u.Name+"].password"); err != nil {
				return err
			}
		}
		return nil
	})).To(Succeed())
	return found
}

var _ = Describe("Passwords", func() {
	const (
		ann, bob, cat = `{"name":"ann","password":"correct-horse-battery"}`, `{"password":"another-long-word","name":"bob"}`, `{"name":"cat","password":"a-third-long-word"}`
		annShown      = `{"name":"ann","password":"<redacted>"}`
		bobShown      = `{"password":"<redacted>","name":"bob"}`
		basicFilter   = "Filter_name=users&Filter_type=http_filter_basicauth&Filter_config="
	)
	users := func(list ...string) string { return `{"users":[` + strings.Join(list, ",") + `]}` }
	var a *api
	put := func(config string) answer {
		return a.put("/filter/users", "Filter_type=http_filter_basicauth&Filter_config="+config)
	}
	BeforeEach(func() {
		a = startAPI(openSecrets)
		a.given("/filter", basicFilter+users(ann, bob), "/service", "Service_Name=shop&fqdn=shop.example.com", "/service/shop/filter/users", "", "/proxy", "Name=gw", "/proxy/gw/service/shop", "")
	})

	It("are stored sealed and never shown, and a warning says what Envoy keeps", func() {
		got := put(users(ann, bob, cat))
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.warnings()).To(HaveExactElements(HavePrefix("/filter/users keeps passwords in Envoys as SHA-1")))
		Expect(a.get("/filter/users").body).To(ContainSubstring(`"filter_config":` + users(annShown, bobShown, `{"name":"cat","password":"<redacted>"}`)))
		for _, secret := range []string{"correct-horse-battery", "another-long-word", "a-third-long-word"} {
			for _, path := range []string{"/filter", "/filter/users", "/service/shop/filter", "/service/dump/shop", "/proxy/dump/gw", "/config", "/config?secrets=sealed", "/revision/1", "/revision/6"} {
				got := a.get(path)
				Expect(got.status).To(Equal(200), path)
				Expect(got.body).NotTo(ContainSubstring(secret), path)
			}
			Expect(a.stored()).NotTo(ContainSubstring(secret))
			Expect(a.log.String()).NotTo(ContainSubstring(secret))
		}
	})

	It("are kept if they are sent back redacted, by user name", func() {
		revision := a.revision()
		Expect(put(users(annShown, bobShown)).status).To(Equal(200))
		Expect(a.revision()).To(Equal(revision), "nothing changed")
		By("in another order, with one added, one removed and one changed")
		Expect(put(users(cat, bobShown, `{"name":"ann","password":"changed-long-word"}`)).status).To(Equal(200))
		Expect(a.passwordsOf("users")).To(Equal(map[string]string{"cat": "a-third-long-word", "bob": "another-long-word", "ann": "changed-long-word"}))
		Expect(put(users(bobShown)).status).To(Equal(200))
		Expect(a.passwordsOf("users")).To(Equal(map[string]string{"bob": "another-long-word"}))
		By("but not for another name")
		put(users(bobShown, annShown)).expectProblem(400,
			`{"type":"urn:gatehouse:problem:invalid_fields","title":"Fields are missing or wrong","status":400,"detail":"a secret cannot be stored; see errors",`+
				`"instance":"/filter/users","code":"invalid_fields","errors":[{"field":"Filter_config.users[ann].password","message":"is <redacted>, but no value is stored that it could stand for; write the secret itself, or apply what GET /config?secrets=sealed returns"}]}`)
		Expect(a.passwordsOf("users")).To(Equal(map[string]string{"bob": "another-long-word"}))
	})

	It("survive a document and a rollback", func() {
		dump, shown, revision := a.get("/config?secrets=sealed").body, a.get("/config").body, a.revision()
		for _, text := range []string{dump, shown} {
			got := a.putConfig("", text)
			Expect(got.status).To(Equal(200), got.body)
		}
		Expect(a.revision()).To(Equal(revision))
		want := map[string]string{"ann": "correct-horse-battery", "bob": "another-long-word"}
		Expect(put(users(cat)).status).To(Equal(200))
		Expect(a.post(fmt.Sprintf("/revision/%d/rollback", revision), "").status).To(Equal(200))
		Expect(a.passwordsOf("users")).To(Equal(want))
		Expect(put(users(cat)).status).To(Equal(200))
		Expect(a.putConfig("?force=true", dump).status).To(Equal(200))
		Expect(a.passwordsOf("users")).To(Equal(want))
	})

	It("are sealed for one user of one filter", func() {
		dump := a.get("/config?secrets=sealed").body
		for _, other := range []string{strings.Replace(dump, "name: ann", "name: eve", 1), strings.ReplaceAll(dump, "filter_name: users", "filter_name: others")} {
			Expect(other).NotTo(Equal(dump))
			got := a.putConfig("", other)
			Expect(got.status).To(Equal(http.StatusBadRequest))
			Expect(got.body).To(ContainSubstring("was sealed with another key or for another object"))
		}
	})

	It("may come from a secret, which may get its value later", func() {
		a.given("/secret", "Secret_name=word", "/service/shop/route", "Route_Name=root&Route_prefix=/", "/filter", "Filter_name=late&Filter_type=http_filter_basicauth&Filter_config="+users(`{"name":"ann","password":{"secret":"word"}}`),
			"/service/shop/route/root/filter/late", "")
		Expect(a.get("/filter/late").body).To(ContainSubstring(`{"secret":"word"}`))
		Expect(a.delete("/secret/word").status).To(Equal(http.StatusConflict), "the filter names it")
	})

	It("are not lost to a secret whose new value is none, also in one of several credentials", func() {
		for i, filter := range []string{
			"http_filter_basicauth&Filter_config=" + users(`{"name":"ann","password":{"secret":"word0"}}`),
			`http_filter_anyof&Filter_config={"apikey":{"keys":"a"},"basicauth":` + users(`{"name":"ann","password":{"secret":"word1"}}`) + "}",
		} {
			name := fmt.Sprint("word", i)
			if i == 0 {
				a.given("/keyset", "Keyset_name=a")
			}
			a.given("/secret", "Secret_name="+name, "/filter", fmt.Sprint("Filter_name=", name, "&Filter_type=", filter))
			By("a first value, which is short, and one that is a password")
			Expect(a.patch("/secret/"+name, "Secret_value=short").status).To(Equal(200))
			Expect(a.patch("/secret/"+name, "Secret_value=correct-horse-battery").status).To(Equal(200))
			for _, value := range []string{"", "short", "correct-horse-battery\n"} {
				got := a.patch("/secret/"+name, "Secret_value="+value)
				Expect(got.status).To(Equal(http.StatusUnprocessableEntity), value)
				Expect(got.body).To(ContainSubstring("/filter/"+name+" cannot become a working configuration: the value of its secret "+name+" would not be a password: it "), value)
			}
			Expect(a.patch("/secret/"+name, "Secret_value=another-long-word").status).To(Equal(200))
		}
		a.given("/secret", "Secret_name=free&Secret_value=correct-horse-battery")
		Expect(a.patch("/secret/free", "Secret_value=short").status).To(Equal(200), "no filter names it")
	})

	It("of tokens are not lost to a secret whose new value is too short, and may come later", func() {
		a.given("/keyset", "Keyset_name=a", "/service/shop/route", "Route_Name=root&Route_prefix=/")
		for i, filter := range []string{
			`http_filter_jwt&Filter_config={"issuer":"us","hmac_key":{"secret":"key0"}}`,
			`http_filter_anyof&Filter_config={"apikey":{"keys":"a"},"jwt":{"issuer":"us","hmac_key":{"secret":"key1"}}}`,
		} {
			name := fmt.Sprint("key", i)
			a.given("/secret", "Secret_name="+name, "/filter", fmt.Sprint("Filter_name=", name, "&Filter_type=", filter), "/service/shop/route/root/filter/"+name, "")
			Expect(a.patch("/secret/"+name, "Secret_value=short").status).To(Equal(200))
			Expect(a.patch("/secret/"+name, "Secret_value=a+key+of+32+bytes+in+its+secret!").status).To(Equal(200))
			got := a.patch("/secret/"+name, "Secret_value=a+key+of+31+bytes+in+its+secret")
			Expect(got.status).To(Equal(http.StatusUnprocessableEntity), got.body)
			Expect(got.body).To(ContainSubstring("the value of its secret " + name + " would not be a key for HS256: it has fewer than 32 bytes"))
			Expect(a.delete("/secret/"+name).status).To(Equal(http.StatusConflict), "the filter names it")
			Expect(a.delete("/service/shop/route/root/filter/" + name).status).To(Equal(200))
		}
	})

	It("are required by only one filter of a service or route, and not together with tokens or a login", func() {
		const tokens = `{"issuer":"us","jwks":{"keys":[{"kty":"EC","crv":"P-256","kid":"one","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}}`
		a.given("/secret", "Secret_name=cookie&Secret_value="+longText, "/keyset", "Keyset_name=a", "/service/shop/route", "Route_Name=root&Route_prefix=/",
			"/filter", "Filter_name=more&Filter_type=http_filter_basicauth&Filter_config="+users(ann), "/filter", "Filter_name=tokens&Filter_type=http_filter_jwt&Filter_config="+tokens,
			"/filter", "Filter_name=login&"+loginForm(safeLogin), "/filter", "Filter_name=keys&Filter_type=http_filter_apikey&Filter_config={\"keys\":\"a\"}",
			"/filter", "Filter_name=keys2&Filter_type=http_filter_apikey&Filter_config={\"keys\":\"a\",\"header\":\"x-b\"}",
			"/service/shop/filter/keys", "", "/service/shop/route/root/filter/more", "")
		for link, other := range map[string]string{"more": "of which only one can decide which requests are allowed", "tokens": "of which only one can decide which requests are allowed", "login": "of which only one can decide which requests are allowed", "keys2": "of which only one can say which API keys are accepted"} {
			got := a.post("/service/shop/filter/"+link, "")
			Expect(got.status).To(Equal(http.StatusUnprocessableEntity), link)
			Expect(got.body).To(ContainSubstring(other), link)
		}
		Expect(a.post("/service/shop/route/root/filter/tokens", "").status).To(Equal(http.StatusUnprocessableEntity))
	})
})
