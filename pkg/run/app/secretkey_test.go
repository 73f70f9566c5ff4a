package app_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// call sends a body. It returns the status and the body of the answer.
func call(method, url, contentType, body string) (status int, answer string) {
	GinkgoHelper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Content-Type", contentType)
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	return res.StatusCode, string(b)
}

func secretKeySettings(dir string) config.Config {
	GinkgoHelper()
	cfg, _, err := config.Load(config.SecretKey, map[string]string{"data-dir": dir}, nil, os.ReadFile)
	Expect(err).NotTo(HaveOccurred())
	return cfg
}

// withKey is a data directory with a copy of a key.
func withKey(key []byte) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(dir, "secret.key"), key, 0o600)).To(Succeed())
	return dir
}

const (
	formType = "application/x-www-form-urlencoded"
	yamlType = "application/yaml"
)

var _ = Describe("The key of the secrets", func() {
	It("is rotated while a server runs", func() {
		dir := GinkgoT().TempDir()
		r, stop := serveUntil(settings(dir, nil))
		api := "http://127.0.0.1:" + r.port()
		expect := func(want int, method, path, contentType, body string) string {
			GinkgoHelper()
			status, answer := call(method, api+path, contentType, body)
			Expect(status).To(Equal(want), answer)
			return answer
		}
		expect(201, "POST", "/secret", formType, "Secret_name=token&Secret_value=first")
		expect(200, "PUT", "/secret/token", formType, "Secret_value=second")
		oldKey, err := os.ReadFile(filepath.Join(dir, "secret.key"))
		Expect(err).NotTo(HaveOccurred())
		oldDump := expect(200, "GET", "/config?secrets=sealed", "", "")

		out := gbytes.NewBuffer()
		Expect(app.RotateSecretKey(context.Background(), secretKeySettings(dir), environment(out), true)).To(Succeed())
		Expect(string(out.Contents())).To(Equal("sealed again: 1 text of the configuration, 3 texts of its history\n" +
			"removed from " + filepath.Join(dir, "secret.key") + ": 1 old key\n"))
		newKey, err := os.ReadFile(filepath.Join(dir, "secret.key"))
		Expect(err).NotTo(HaveOccurred())

		By("no revision, and writing the same again is no change")
		Expect(expect(200, "GET", "/revision", "", "")).To(MatchRegexp(`^\{"data":\{"core_db_revision":\[\{"revision":2,`))
		expect(200, "PUT", "/secret/token", formType, "Secret_value=second")
		Expect(expect(200, "GET", "/revision", "", "")).To(MatchRegexp(`^\{"data":\{"core_db_revision":\[\{"revision":2,`))

		By("a dump then opens with the new key only")
		newDump := expect(200, "GET", "/config?secrets=sealed", "", "")
		sealed := regexp.MustCompile(`sealed:v1:[A-Za-z0-9_-]+`)
		Expect(sealed.FindString(newDump)).NotTo(Equal(sealed.FindString(oldDump)))
		elsewhere := func(key []byte) string {
			return "http://127.0.0.1:" + serve(settings(withKey(key), nil)).port() + "/config"
		}
		withOld, withNew := elsewhere(oldKey), elsewhere(newKey)
		for _, c := range []struct {
			url, dump string
			status    int
		}{{withOld, newDump, 400}, {withNew, oldDump, 400}, {withOld, oldDump, 200}, {withNew, newDump, 200}} {
			status, answer := call("PUT", c.url, yamlType, c.dump)
			Expect(status).To(Equal(c.status), answer)
		}

		By("an old revision can be restored, also after a restart")
		expect(200, "POST", "/revision/1/rollback", formType, "")
		Expect(expect(200, "GET", "/revision/3", "", "")).To(ContainSubstring(`"secret_value"`))
		stop()
		Eventually(r.done).Should(BeClosed())
		api = "http://127.0.0.1:" + serve(settings(dir, nil)).port()
		expect(200, "POST", "/revision/2/rollback", formType, "")
		Expect(sealed.FindString(expect(200, "GET", "/config?secrets=sealed", "", ""))).To(Equal(sealed.FindString(newDump)))
	})

	It("stops the program while it is missing, and works again when it is back", func() {
		dir := GinkgoT().TempDir()
		first, stop := serveUntil(settings(dir, nil))
		first.port()
		stop()
		Eventually(first.done).Should(BeClosed())
		path := filepath.Join(dir, "secret.key")
		Expect(os.Rename(path, path+".away")).To(Succeed())
		r := serve(settings(dir, nil))
		Eventually(r.done).Should(Receive(MatchError("the key file " + path + " does not exist " +
			"(restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it)")))
		Expect(path).NotTo(BeAnExistingFile())
		Expect(os.Rename(path+".away", path)).To(Succeed())
		serve(settings(dir, nil)).port()
	})
})
