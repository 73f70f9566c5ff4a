package health_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
)

func TestHealth(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Health")
}

var _ = Describe("The health of an upstream", func() {
	well := &health.Own{Resolved: true}
	DescribeTable("follows from what is known",
		func(f health.Facts, state health.State, reason, message string) {
			Expect(health.Of(f)).To(Equal(health.Condition{State: state, Reason: reason, Message: message}))
		},
		Entry("nothing is known", health.Facts{}, health.NotChecked, "", "not checked: it has no health check, and no Envoy has reported on its requests"),
		Entry("requests without a result", health.Facts{Reported: true, Own: well, Counts: health.Counts{Untold: 3}}, health.NotKnown, "",
			"of its last 3 requests, none is known to have succeeded"),
		Entry("some requests without a result", health.Facts{Reported: true, Own: well, Counts: health.Counts{Succeeded: 1, Untold: 3}},
			health.Answering, "", "1 of its last 4 requests succeeded"),
		Entry("no requests", health.Facts{Reported: true, Own: well}, health.NotChecked, "", "not checked: it has no health check, and no request got there lately"),
		Entry("a health check elsewhere", health.Facts{Checked: true}, health.NotKnown, "",
			"its health check is made by Envoys that do not report the result, and no request got there lately"),
		Entry("a health check here", health.Facts{Checked: true, Own: well}, health.Healthy, "", "it passes its health check"),
		Entry("a health check here, while some requests fail", health.Facts{Checked: true, Own: well, Counts: health.Counts{Succeeded: 3, Failed: 1}},
			health.Healthy, "", "it passes its health check, but 1 of its last 4 requests failed"),
		Entry("a health check here, while all requests fail", health.Facts{
			Checked: true, Own: well, Counts: health.Counts{Failed: 2, Causes: health.Causes{ServerError: 2}},
		}, health.Failing, health.ServerError, "it answers 5xx; 2 of its last 2 requests failed"),
		Entry("a name with several addresses", health.Facts{Checked: true, Own: &health.Own{Resolved: true, Addresses: 3, Ill: 1}},
			health.Healthy, "", "2 of its 3 addresses are healthy"),
		Entry("the first health check", health.Facts{Checked: true, Own: &health.Own{Resolved: true, Pending: true}}, health.Checking, "", "its first health check is under way"),
		Entry("requests that succeed", health.Facts{Counts: health.Counts{Succeeded: 1}}, health.Answering, "", "1 of its last 1 request succeeded"),
		Entry("a name without an address", health.Facts{Own: &health.Own{}}, health.Unresolved, health.NameError, "the name does not resolve to an address"),
		Entry("an ejection", health.Facts{Own: &health.Own{Resolved: true, Ejected: true}, Counts: health.Counts{Unconnected: 3, Causes: health.Causes{Refused: 3}}},
			health.Ejected, health.Refused, "connection refused, or the host is not reachable; 3 of its last 3 attempts to connect failed; it gets no requests for a moment"),
		Entry("an ejection without remembered failures", health.Facts{Own: &health.Own{Resolved: true, Ejected: true}},
			health.Ejected, "", "it failed several times in a row; it gets no requests for a moment"),
		Entry("a report of failed connections", health.Facts{Counts: health.Counts{Unconnected: 12}}, health.Failing, health.NotConnected,
			"no connection, for a reason that load reports do not show; 12 of its last 12 attempts to connect failed"),
		Entry("a report of failed requests", health.Facts{Counts: health.Counts{Succeeded: 1, Failed: 2, Unconnected: 1}}, health.Failing, health.NoAnswer,
			"requests get a 5xx answer or none, load reports do not show which; 3 of its last 4 requests failed"),
		Entry("several causes, the most frequent first", health.Facts{Counts: health.Counts{Unconnected: 5, Causes: health.Causes{Refused: 1, ConnectTimeout: 4}}},
			health.Failing, health.ConnectTimeout,
			"connect timeout: nothing answers at this address; or connection refused, or the host is not reachable; 5 of its last 5 attempts to connect failed"),
	)

	DescribeTable("names the cause",
		func(protocol string, c health.Counts, reason, begins string) {
			got := health.Of(health.Facts{Protocol: protocol, Counts: c})
			Expect(got.Reason).To(Equal(reason))
			Expect(got.Message).To(HavePrefix(begins))
		},
		Entry(nil, "tls", health.Counts{Unconnected: 1, Causes: health.Causes{TLS: 1}}, health.TLSError, "TLS error: the handshake fails, perhaps because the port does not speak TLS;"),
		Entry(nil, "h2", health.Counts{Unconnected: 1, Causes: health.Causes{Certificate: 1}}, health.Certificate, "TLS error: its certificate is not trusted, or has another name;"),
		Entry(nil, "http", health.Counts{Failed: 1, Causes: health.Causes{Protocol: 1}}, health.ProtocolError, "protocol error: what answers is not HTTP/1.1; the port may speak TLS or HTTP/2;"),
		Entry(nil, "h2c", health.Counts{Failed: 1, Causes: health.Causes{Protocol: 1}}, health.ProtocolError, "protocol error: what answers is not HTTP/2; the port may speak HTTP/1.1;"),
		Entry(nil, "http", health.Counts{Failed: 1, Causes: health.Causes{Closed: 1}}, health.Closed, "the connection is closed without an answer in HTTP/1.1; the port may speak TLS or HTTP/2;"),
		Entry(nil, "tls", health.Counts{Failed: 1, Causes: health.Causes{Timeout: 1}}, health.Timeout, "timeout: requests are not answered in time;"),
	)

	DescribeTable("describes what is wrong with its health check",
		func(own health.Own, reason, message string) {
			own.Resolved, own.Failed = true, true
			Expect(health.Of(health.Facts{Checked: true, Own: &own})).To(Equal(health.Condition{State: health.Unhealthy, Reason: reason, Message: message}))
		},
		Entry(nil, health.Own{CheckFailures: 2}, health.CheckAnswer, "its health check is answered with a status other than 200"),
		Entry(nil, health.Own{CheckFailures: 2, CheckBroken: 2}, health.NotConnected, "its health check does not connect, or is cut off"),
		Entry(nil, health.Own{CheckFailures: 2, CheckBroken: 2, CheckTimeout: true}, health.Timeout, "its health check is not answered in time"),
		Entry(nil, health.Own{CheckFailures: 2, CheckBroken: 2, CheckTLS: 2}, health.TLSError, "its health check meets a TLS error: the port may not speak TLS, or its certificate is not trusted"),
		Entry(nil, health.Own{CheckFailures: 2, CheckBroken: 1}, "", "it fails its health check"),
	)
})

var _ = Describe("A tally", func() {
	start := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	const window = 30 * time.Second
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

	It("adds up, forgets old counts, and forgets failures once requests only succeed", func() {
		var t health.Tally
		t.Add(at(0), window, health.Counts{Failed: 1, Causes: health.Causes{Timeout: 1}})
		t.Add(at(5), window, health.Counts{Succeeded: 1, Unconnected: 2, Causes: health.Causes{Refused: 2}})
		Expect(t.Counts).To(Equal(health.Counts{Succeeded: 1, Failed: 1, Unconnected: 2, Causes: health.Causes{Timeout: 1, Refused: 2}}))
		t.Add(at(6), window, health.Counts{})
		Expect(t.Last).To(Equal(at(5)))
		Expect(t.Fresh(at(35), window)).To(BeTrue())
		Expect(t.Fresh(at(36), window)).To(BeFalse())

		t.Add(at(7), window, health.Counts{Succeeded: 3})
		Expect(t.Counts).To(Equal(health.Counts{Succeeded: 3}), "it is well again")
		t.Add(at(38), window, health.Counts{Failed: 1})
		Expect(t.Counts).To(Equal(health.Counts{Failed: 1}), "what was before is older than the window")
		Expect(t.Since).To(Equal(at(38)))
	})

	It("is not fresh before anything is counted", func() {
		Expect(health.Tally{}.Fresh(time.Time{}, window)).To(BeFalse())
	})
})
