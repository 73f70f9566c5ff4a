package app_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// events follows GET /events of a server until the stream ends.
func events(base string) (lines *gbytes.Buffer, ended chan error) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	DeferCleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/events", nil)
	Expect(err).NotTo(HaveOccurred())
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(res.StatusCode).To(Equal(200))
	lines, ended = gbytes.NewBuffer(), make(chan error, 1)
	go func() {
		defer res.Body.Close()
		scanner := bufio.NewScanner(res.Body)
		for scanner.Scan() {
			_, _ = lines.Write(append(scanner.Bytes(), '\n'))
		}
		ended <- scanner.Err()
	}()
	Eventually(lines).Should(gbytes.Say("id: "))
	return lines, ended
}

func post(base, path, fields string) {
	GinkgoHelper()
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	form, err := url.ParseQuery(fields)
	Expect(err).NotTo(HaveOccurred())
	res, err := client.PostForm(base+path, form)
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(res.Body.Close()).To(Succeed())
	Expect(res.StatusCode).To(Equal(201), string(body))
}

var _ = Describe("The events of a server", func() {
	It("report each revision, in order, before it is published", func() {
		r := serve(settings(GinkgoT().TempDir(), nil))
		base := "http://127.0.0.1:" + r.port()
		lines, _ := events(base)
		post(base, "/proxy", "Name=gw")
		post(base, "/proxy?message=for+the+sale", "Name=two")
		post(base, "/service", "Service_Name=shop&fqdn=*")
		at := `"at":"[^"]+"`
		Eventually(lines).Should(gbytes.Say(`event: change\ndata: {"event":"change",` + at + `,"revision":1,"actor":"local","request":"POST /proxy","changes":1}`))
		Eventually(lines).Should(gbytes.Say(`"revision":2,"actor":"local","request":"POST /proxy","changes":1,"message":"for the sale"}`))
		Eventually(lines).Should(gbytes.Say(`"revision":3,"actor":"local","request":"POST /service","changes":1}`))
		var changes, published []string
		Eventually(func() []string {
			changes, published = nil, nil
			for _, m := range regexp.MustCompile(`"event":"(change|publish)",`+at+`,"revision":(\d+)`).FindAllStringSubmatch(string(lines.Contents()), -1) {
				if m[1] == "change" {
					changes = append(changes, m[2])
				} else {
					Expect(changes).To(ContainElement(m[2]))
					published = append(published, m[2])
				}
			}
			return published
		}).Should(ContainElement("3"))
		Expect(changes).To(Equal([]string{"1", "2", "3"}))
	})

	It("end cleanly when the server stops", func() {
		r, stop := serveUntil(settings(GinkgoT().TempDir(), nil))
		base := "http://127.0.0.1:" + r.port()
		_, ended := events(base)
		start := time.Now()
		stop()
		Eventually(ended).Should(Receive(BeNil()))
		Eventually(r.done).Should(Receive(BeNil()))
		Expect(time.Since(start)).To(BeNumerically("<", 3*time.Second), "the drain")
		Expect(string(r.log.Contents())).NotTo(ContainSubstring("cut off"))
	})
})

var _ = Describe("The metrics of a server", func() {
	It("require no more than a token, and count the API's calls", func() {
		r := serve(settings(GinkgoT().TempDir(), map[string]string{"api-addr": "0.0.0.0:0"}, "GATEHOUSE_API_ADMIN_TOKEN="+adminToken))
		base := "http://127.0.0.1:" + r.port()
		Expect(status(base+"/metrics", "")).To(Equal(401))
		Expect(status(base+"/service", adminToken)).To(Equal(200))
		req, err := http.NewRequest("GET", base+"/metrics", nil)
		Expect(err).NotTo(HaveOccurred())
		req.Header.Set("Authorization", "Bearer "+adminToken)
		client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(res.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(res.Body.Close()).To(Succeed())
		Expect(strings.Split(string(body), "\n")).To(ContainElements(
			`gatehouse_build_info{version="test"} 1`, `gatehouse_api_requests_total{method="GET",path="/service",status="200"} 1`,
		))
	})
})
