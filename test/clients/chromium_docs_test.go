//go:build chromium

package clients_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// window is a page of a headless Chromium that can be asked while its scripts and workers run, unlike one that only
// dumps its document.
type window struct {
	commands *os.File
	answers  *bufio.Reader
	session  string
	last     int
	// complaints is what the browser says of the page, such as what its policy forbids.
	complaints []string
}

// openWindow opens an empty page.
func openWindow(ctx context.Context) *window {
	GinkgoHelper()
	hears, commands, err := os.Pipe()
	Expect(err).NotTo(HaveOccurred())
	answers, says, err := os.Pipe()
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--no-first-run", "--user-data-dir="+GinkgoT().TempDir(), "--remote-debugging-pipe")
	cmd.Env = append(os.Environ(), "HOME="+GinkgoT().TempDir())
	cmd.ExtraFiles, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = []*os.File{hears, says}, io.Discard, io.Discard, 10*time.Second
	Expect(cmd.Start()).To(Succeed())
	Expect(hears.Close()).To(Succeed())
	Expect(says.Close()).To(Succeed())
	w := &window{commands: commands, answers: bufio.NewReader(answers)}
	DeferCleanup(func() {
		Expect(commands.Close()).To(Succeed()) // which ends it
		_ = cmd.Wait()
		Expect(answers.Close()).To(Succeed())
	})
	target := w.call("Target.createTarget", map[string]any{"url": "about:blank"})
	attached := w.call("Target.attachToTarget", map[string]any{"targetId": target["targetId"], "flatten": true})
	w.session = attached["sessionId"].(string)
	w.call("Log.enable", nil)
	w.call("Runtime.enable", nil)
	return w
}

// call calls a method of the browser's protocol, and returns its result.
func (w *window) call(method string, params map[string]any) map[string]any {
	GinkgoHelper()
	w.last++
	message := map[string]any{"id": w.last, "method": method, "params": params}
	if w.session != "" {
		message["sessionId"] = w.session
	}
	text, err := json.Marshal(message)
	Expect(err).NotTo(HaveOccurred())
	_, err = w.commands.Write(append(text, 0))
	Expect(err).NotTo(HaveOccurred())
	for {
		text, err := w.answers.ReadString(0)
		Expect(err).NotTo(HaveOccurred())
		var answer struct {
			ID     int
			Method string
			Result map[string]any
			Error  map[string]any
		}
		Expect(json.Unmarshal([]byte(strings.TrimSuffix(text, "\x00")), &answer)).To(Succeed())
		if answer.Method == "Log.entryAdded" || answer.Method == "Runtime.exceptionThrown" {
			w.complaints = append(w.complaints, text)
		}
		if answer.ID == w.last {
			Expect(answer.Error).To(BeEmpty(), method)
			return answer.Result
		}
	}
}

// show opens a page.
func (w *window) show(url string) {
	GinkgoHelper()
	w.complaints = nil
	w.call("Page.navigate", map[string]any{"url": url})
}

// ask returns the value of an expression in the page.
func (w *window) ask(expression string) string {
	GinkgoHelper()
	result := w.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	return fmt.Sprint(result["result"].(map[string]any)["value"])
}

var _ = Describe("Chromium", func() {
	It("shows the documentation and its search, and finds nothing that their policy forbids", func(ctx SpecContext) {
		g, err := testkit.StartGatehouse(ctx, nil, "serve", "--data-dir", GinkgoT().TempDir(), "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
		Expect(g.WaitReady(ctx)).To(Succeed())
		w := openWindow(ctx)

		w.show(g.API.URL + "/docs/concepts.html")
		Eventually(w.ask).WithArguments("document.querySelector('h1')?.innerText").Should(HavePrefix("Concepts"), "run make docs build")
		Eventually(w.ask).WithArguments("document.documentElement.className").Should(MatchRegexp(`\bjs\b`))
		Eventually(w.ask).WithArguments("document.querySelector('article img').naturalWidth > 0").Should(Equal("true"))
		Expect(w.complaints).To(BeEmpty())

		w.show(g.API.URL + "/docs/adr/index.html?q=key-auth")
		Eventually(w.ask).WithArguments("[...document.querySelectorAll('a.md-search-result__link')].slice(0, 5).map(a => a.href).join()").
			Should(ContainSubstring("/docs/apikey.html"))
		Expect(w.complaints).To(BeEmpty())

		w.show(g.API.URL + "/docs/nothing/at.html")
		Eventually(w.ask).WithArguments("document.querySelector('h1')?.innerText").Should(Equal("404 - Not found"))
		Eventually(w.ask).WithArguments("getComputedStyle(document.querySelector('.md-header')).position").Should(Equal("sticky"), "it has its style")
		Expect(strings.Join(w.complaints, "")).NotTo(ContainSubstring("Content Security Policy"))

		w.show(g.API.URL + "/docs/api/")
		Eventually(w.ask).WithArguments("document.body.innerText").Should(ContainSubstring("Create an upstream"))
		Expect(w.complaints).To(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})
