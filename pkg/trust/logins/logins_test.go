package logins_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/logins"
)

func line(what, status, code string) []byte {
	text, err := json.Marshal(map[string]string{
		"gatehouse": "login_failed", "service": "shop", "login": "filter/staff", "what": what, "status": status, "error": code, "request_id": "7f-1",
	})
	Expect(err).NotTo(HaveOccurred())
	return text
}

var _ = Describe("A failed login", func() {
	DescribeTable("has a reason", func(what, status, code, want string) {
		f, ok := logins.Read(line(what, status, code))
		Expect(ok).To(BeTrue())
		Expect(f.Service).To(Equal("shop"))
		Expect(f.Login).To(Equal(model.FilterKey("staff")))
		Expect(f.RequestID).To(Equal("7f-1"))
		Expect(f.Reason.Code).To(Equal(want))
		Expect(f.Reason.Message).NotTo(BeEmpty())
	},
		Entry(nil, "Failed to get access token", "401", "invalid_client", "wrong_client_secret"),
		Entry(nil, "Failed to get access token", "400", "invalid_client", "wrong_client_secret"),
		Entry(nil, "Failed to get access token", "400", "invalid_grant", "code_refused"),
		Entry(nil, "Failed to get access token", "503", "-", "provider_unreachable"),
		Entry(nil, "Failed to get access token", "504", "", "provider_timeout"),
		Entry(nil, "Failed to get access token", "500", "", "token_endpoint_error"),
		Entry(nil, "Failed to get access token", "", "", "token_endpoint_error"),
		Entry(nil, "Failed to parse oauth response body", "", "", "bad_answer"),
		Entry(nil, "No access token found in the token exchange response", "", "", "bad_answer"),
		Entry(nil, "OAuth server returned an error", "", "access_denied", "user_denied"),
		Entry(nil, "OAuth server returned an error", "", "invalid_scope", "provider_refused"),
		Entry(nil, "OAuth server returned an error", "", "marker", "provider_refused"),
		Entry(nil, "Code or state query param does not exist", "", "", "outdated_login"),
		Entry(nil, "State query param is not a valid JSON", "", "", "outdated_login"),
		Entry(nil, "State url host is not in the allowed redirect domains", "", "", "redirect_domain"),
		Entry(nil, "CSRF token validation failed", "", "", "outdated_login"),
		Entry(nil, "Code verifier cookie is missing in the request", "", "", "outdated_login"),
		Entry(nil, "jwt_authn_access_denied{Audiences_in_Jwt_are_not_allowed}", "", "", "wrong_audience"),
		Entry(nil, "jwt_authn_access_denied{Jwt_issuer_is_not_configured}", "", "", "wrong_issuer"),
		Entry(nil, "jwt_authn_access_denied{Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt}", "", "", "unknown_key"),
		Entry(nil, "jwt_authn_access_denied{Jwt_verification_fails}", "", "", "bad_signature"),
		Entry(nil, "jwt_authn_access_denied{Jwt_is_missing}", "", "", "no_id_token"),
		Entry(nil, "jwt_authn_access_denied{Jwt_is_expired}", "", "", "token_expired"),
		Entry(nil, "jwt_authn_access_denied{Jwt_not_yet_valid}", "", "", "token_not_yet_valid"),
		Entry(nil, "jwt_authn_access_denied{Jwt_header_is_an_invalid_JSON}", "", "", "bad_id_token"),
		Entry(nil, "rbac_access_denied_matched_policy[none]", "", "", "claim_missing"),
		Entry(nil, "", "", "", "other"),
	)

	It("is not an Envoy log line, and contains nothing that an outsider may have written", func() {
		_, ok := logins.Read([]byte(`{"level":"warning","logger":"main","line":"x"}`))
		Expect(ok).To(BeFalse())
		_, ok = logins.Read([]byte(`{"gatehouse":"login_failed","service":`))
		Expect(ok).To(BeFalse())
		f, ok := logins.Read([]byte(`{"gatehouse":"login_failed","service":"shop","what":"OAuth server returned an error","status":null,"error":"marker","request_id":"<marker>"}`))
		Expect(ok).To(BeTrue())
		Expect(fmt.Sprint(f)).NotTo(ContainSubstring("marker"))
	})

	It("is reported once a minute for each service and reason, and counted", func() {
		var c logins.Counts
		at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		secret, _ := logins.Read(line("Failed to get access token", "401", "invalid_client"))
		denied, _ := logins.Read(line("OAuth server returned an error", "", "access_denied"))
		report := func(f logins.Failure, now time.Time) string {
			fresh, more := c.Add(f, now)
			return fmt.Sprint(fresh, more)
		}
		Expect(report(secret, at)).To(Equal("true 0"))
		Expect(report(denied, at)).To(Equal("true 0"))
		for i := range 100 {
			Expect(report(secret, at.Add(time.Duration(i)*time.Millisecond))).To(Equal("false 0"))
		}
		Expect(report(secret, at.Add(time.Minute))).To(Equal("true 100"))
		Expect(c.Totals()).To(Equal(map[string]int{"wrong_client_secret": 102, "user_denied": 1}))

		said := func(now time.Time) (list []string) {
			for _, v := range c.Conditions(now) {
				list = append(list, v.Key.Path()+" "+v.Code+": "+v.Message)
			}
			return list
		}
		wrong := "wrong client secret at the token endpoint: the identity provider does not accept client_id with client_secret (invalid_client); " +
			"102 since 2026-11-22 10:00:00 UTC, the last at 2026-11-22 10:01:00 UTC (request 7f-1)"
		Expect(said(at.Add(time.Minute))).To(ConsistOf(
			"/service/shop LoginFailing: "+wrong,
			"/filter/staff LoginFailing: on service shop: "+wrong,
			HavePrefix("/service/shop LoginFailing: a user canceled"),
			HavePrefix("/filter/staff LoginFailing: on service shop: a user canceled"),
		))
		Expect(said(at.Add(time.Hour + time.Second))).To(HaveLen(2))
		Expect(said(at.Add(2 * time.Hour))).To(BeEmpty())
		Expect(report(secret, at.Add(3*time.Hour))).To(Equal("true 0"))
		Expect(said(at.Add(3 * time.Hour))).To(ContainElement(ContainSubstring("; 1 since 2026-11-22 13:00:00 UTC")))
	})

	It("is reported within limits, whatever comes", func() {
		var c logins.Counts
		at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
		reports := 0
		for i := range 5000 {
			f, _ := logins.Read([]byte(strings.Replace(string(line("", "", "")), "shop", fmt.Sprint("s", i), 1)))
			if fresh, _ := c.Add(f, at); fresh {
				reports++
			}
		}
		Expect(reports).To(Equal(30))
		Expect(c.Conditions(at)).To(HaveLen(2 * 2000))
		Expect(c.Totals()).To(Equal(map[string]int{"other": 5000}))
		By("others are reported once those are old")
		f, _ := logins.Read(line("", "", ""))
		fresh, _ := c.Add(f, at.Add(2*time.Hour))
		Expect(fresh).To(BeTrue())
		Expect(c.Conditions(at.Add(2 * time.Hour))).To(HaveLen(2))
	})
})

var _ = Describe("A token whose key is not known", func() {
	read := func(line string) string {
		key, ok := logins.ReadUnknownKey([]byte(line))
		if !ok {
			Expect(key).To(BeZero())
			return "nothing"
		}
		return key.Path()
	}

	DescribeTable("names its filter", func(line, want string) { Expect(read(line)).To(Equal(want)) },
		Entry("of the service", `{"gatehouse":"key_unknown","route":null,"host":"filter/api/12345678"}`, "/filter/api"),
		Entry("of the route, in preference to the service's", `{"gatehouse":"key_unknown","route":"filter/admin/1","host":"filter/api/2"}`, "/filter/admin"),
		Entry("unless Envoy knows none", `{"gatehouse":"key_unknown","route":"-","host":"-"}`, "nothing"),
		Entry("unless the line is from a login", `{"gatehouse":"login_failed","service":"shop","login":"filter/staff","host":"filter/staff/1"}`, "nothing"),
		Entry("unless it is another kind of object", `{"gatehouse":"key_unknown","host":"secret/api/1"}`, "nothing"),
		Entry("unless the line is cut off", `{"gatehouse":"key_unknown","host":"filter/a`, "nothing"),
	)

	It("is not a failed login", func() {
		_, ok := logins.Read([]byte(`{"gatehouse":"key_unknown","host":"filter/api/1"}`))
		Expect(ok).To(BeFalse())
	})
})
