package acme

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hookOf writes a program for a hook.
func hookOf(script string) (program, dir string) {
	GinkgoHelper()
	dir = GinkgoT().TempDir()
	program = filepath.Join(dir, "hook")
	Expect(os.WriteFile(program, []byte("#!/bin/sh\ncd "+dir+"\n"+script+"\n"), 0o700)).To(Succeed()) //nolint:gosec // a program
	return program, dir
}

// calling is a watch and an authority with a hook.
func calling(program string, dns model.ACMEDNS) (*Watch, *authority) {
	w := New(Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), DNSExec: program, Dial: (&net.Dialer{}).DialContext})
	return w, &authority{name: "ca", config: &model.ACMEConfig{DNS: &dns}}
}

var _ = Describe("A record in DNS", func() {
	const second = model.Duration(time.Second)
	call := hookCall{present, "*.shop.test", txtRecord{"_acme-challenge.shop.test", "value"}}

	It("is wanted for wildcards, and for hosts that choose it, from an authority with a hook", func() {
		hook := `,"every_service":true,"dns":{"hook":"exec"}`
		objects := []model.Object{
			serviceOf("a", "a.test", "auto_dns"), serviceOf("b", "*.b.test", "auto"), serviceOf("c", "*.c.test", ""), serviceOf("d", "d.test", "auto"),
			onProxy("gw", "a"), onProxy("gw", "b"), onProxy("gw", "c"), onProxy("gw", "d"),
		}
		list := setOf(append(objects, configOf("ca", hook))...).wanted("/hook")
		Expect(list).To(HaveLen(4))
		for i, by := range []string{"dns-01", "dns-01", "dns-01", "http-01"} {
			Expect([]string{list[i].challenge(), list[i].problem}).To(Equal([]string{by, ""}))
		}
		By("and is a problem of those that say so, if there is none")
		list = setOf(append(objects, configOf("ca", hook))...).wanted("")
		Expect(list).To(HaveLen(3))
		Expect(list[0].problem).To(Equal("globalconfig ca has the dns hook exec, and the program was started without --acme-dns-exec"))
		Expect(list[2].problem).To(BeEmpty())
		list = setOf(append(objects, configOf("ca", `,"dns":{"hook":"webhook","url":"https://dns.test/","ca_certificate":"no"}`))...).wanted("")
		Expect(list[1].problem).To(Equal("globalconfig ca names the secret no in dns, which has no certificate"))
	})

	It("is written by a program that gets no setting of the gateway", func() {
		program, dir := hookOf(`echo "$@" > call; env > env`)
		GinkgoT().Setenv("GATEHOUSE_ADMIN_TOKEN", "s3cret")
		w, a := calling(program, model.ACMEDNS{Hook: "exec"})
		Expect(w.callHook(context.Background(), a, call)).To(Succeed())
		Expect(os.ReadFile(filepath.Join(dir, "call"))).To(Equal([]byte("present _acme-challenge.shop.test value\n")))
		env, err := os.ReadFile(filepath.Join(dir, "env")) //nolint:gosec // a file of this test
		Expect(err).NotTo(HaveOccurred())
		Expect(string(env)).To(And(ContainSubstring("ACME_HOST=*.shop.test\n"), Not(ContainSubstring("s3cret")), ContainSubstring("PATH=")))
	})

	It("is not written by a program that fails, whose words are bounded", func() {
		program, _ := hookOf(`head -c 1000000 /dev/zero | tr '\0' x >&2; exit 7`)
		w, a := calling(program, model.ACMEDNS{Hook: "exec"})
		err := w.callHook(context.Background(), a, call)
		Expect(err).To(MatchError(HavePrefix("the dns hook did not present the record: it ended with 7: xxx")))
		Expect(len(err.Error())).To(BeNumerically("<", 5000))
		text, advice := explain(err, "shop.test")
		Expect(text).To(HaveLen(mostText))
		Expect(advice).To(ContainSubstring("--acme-dns-exec"))
	})

	It("is not waited for longer than the timeout, and nothing of the program is left", func() {
		program, dir := hookOf(`sh -c 'echo $$ > pid; exec sleep 1000' & wait`)
		w, a := calling(program, model.ACMEDNS{Hook: "exec", Timeout: second})
		Expect(w.callHook(context.Background(), a, call)).To(MatchError("the dns hook did not present the record in 1s"))
		text, err := os.ReadFile(filepath.Join(dir, "pid")) //nolint:gosec // a file of this test
		Expect(err).NotTo(HaveOccurred())
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() bool {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")) //nolint:gosec // of this test's process
			return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
		}).WithTimeout(testkit.Patience).Should(BeTrue())
	})

	It("is not reached over a redirect, which would get the token", func() {
		Expect(hookClient(nil, nil).CheckRedirect(nil, nil)).To(MatchError(http.ErrUseLastResponse))
	})

	It("has advice of its own", func() {
		a := &attempt{want: wanted{service: &model.Service{FQDN: "*.shop.test"}, host: "*.shop.test"}}
		for kind, what := range map[string]string{"unauthorized": "TXT record _acme-challenge.shop.test", "caa": "CAA record"} {
			_, advice := a.explain(protocol.Problem{Type: protocol.ProblemTypeNamespace + kind})
			Expect(advice).To(ContainSubstring(what))
		}
	})

	It("is told to be missing by the resolver that lacks it", func() {
		w, _ := calling("", model.ACMEDNS{})
		w.opts.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("must not be called") }
		Expect(w.missing(context.Background(), []string{"127.0.0.1:9"}, call.record)).To(And(HavePrefix("127.0.0.1:9 cannot be asked"), ContainSubstring("must not be called")))
	})

	It("is removed again and again, and given up at last", func() {
		w, _ := calling("", model.ACMEDNS{})
		now := start
		w.opts.Now = func() time.Time { return now }
		s := &state{Records: []txtRecord{call.record}}
		for _, pause := range []time.Duration{time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute} {
			w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
			Expect(s.Removal.At.Sub(now)).To(Equal(pause))
		}
		for range 5 {
			w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
		}
		Expect(s.Removal.At.Sub(now)).To(Equal(day))
		Expect(s.Records).NotTo(BeEmpty())
		w.notRemoved(wanted{host: "shop.test"}, s, errors.New("no"))
		Expect(s.Records).To(BeEmpty())
		Expect(s.Removal.Error).To(Equal("no"))
	})

	It("is a condition while it is left", func() {
		w := want(model.ACMEConfig{})
		r := issuedFor(90 * day)
		Expect(condition(w, r)).To(BeNil())
		r.state.Removal.Error = "it answered 503"
		Expect(condition(w, r).Message).To(HavePrefix("the record _acme-challenge.shop.test in DNS is still there: it answered 503."))
	})
})
