package geoip_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/geoip"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestGeoIP(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "databases of addresses")
}

// journal is a log that specs read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

var _ = Describe("The databases of an Envoy", func() {
	var (
		dir, own string
		log      *journal
	)
	BeforeEach(func() { dir, own, log = GinkgoT().TempDir(), GinkgoT().TempDir(), &journal{} })
	at := func(name string) string { return filepath.Join(dir, name) }
	german := func(name string) string {
		GinkgoHelper()
		Expect(testkit.WriteCountries(at(name), map[string]string{"192.0.2.0/24": "DE"})).To(Succeed())
		return at(name)
	}
	open := func(files geoip.Files) *geoip.Keeper {
		return geoip.Open(own, files, slog.New(slog.NewTextHandler(log, nil)))
	}

	It("are copies that only this user reads", func() {
		Expect(testkit.WriteNetworks(at("asn.mmdb"), map[string]uint32{"192.0.2.0/24": 4294967295})).To(Succeed())
		k := open(geoip.Files{Country: german("a.mmdb"), ASN: at("asn.mmdb")})
		Expect(k.Copies()).To(Equal(geoip.Files{Country: filepath.Join(own, "country.mmdb"), ASN: filepath.Join(own, "asn.mmdb")}))
		info, err := os.Stat(k.Copies().Country)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		where := func(address string) string {
			country, network := k.Where(netip.MustParseAddr(address))
			return country + " " + network
		}
		Expect(where("192.0.2.7")).To(Equal("DE 4294967295"))
		Expect(where("::ffff:192.0.2.7")).To(Equal("DE 4294967295"))
		Expect(where("198.51.100.1")).To(Equal(" "))
		Expect(where("2001:db8::1")).To(Equal(" "))
	})

	DescribeTable("are not those that Envoy could not use", func(write func(path string) error, why string) {
		Expect(write(at("bad.mmdb"))).To(Succeed())
		k := open(geoip.Files{Country: at("bad.mmdb")})
		Expect(k.Copies()).To(Equal(geoip.Files{}))
		Expect(log.String()).To(And(ContainSubstring(why), ContainSubstring("--geoip-country "+at("bad.mmdb"))))
		Expect(os.ReadDir(own)).To(BeEmpty())
	},
		Entry("no file", func(string) error { return nil }, "no such file"),
		Entry("a directory", func(p string) error { return os.Mkdir(p, 0o700) }, "is not a file"),
		Entry("an empty file", func(p string) error { return os.WriteFile(p, nil, 0o600) }, "is no database of MaxMind's format"),
		Entry("junk", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("x", 5000)), 0o600) }, "is no database of MaxMind's format"),
		Entry("networks in place of countries", func(p string) error {
			return testkit.WriteNetworks(p, map[string]uint32{"192.0.2.0/24": 64500})
		}, `its records have no country.iso_code, which Envoy reads`),
		Entry("one without records", func(p string) error { return testkit.WriteCountries(p, nil) }, "its records have no country.iso_code"),
		Entry("one with a byte of its records changed", func(p string) error {
			if err := testkit.WriteCountries(p, map[string]string{"192.0.2.0/24": "DE"}); err != nil {
				return err
			}
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			return os.WriteFile(p, bytes.Replace(text, []byte("DE"), []byte{0xff, 0xff}, 1), 0o600)
		}, "is damaged"),
	)

	It("follow the operator's file, and stay as they are while it is bad", func() {
		k := open(geoip.Files{Country: german("a.mmdb")})
		before, err := os.ReadFile(k.Copies().Country)
		Expect(err).NotTo(HaveOccurred())
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.Run(ctx)
		}()
		DeferCleanup(func() {
			cancel()
			<-done
		})
		Expect(os.WriteFile(at("a.mmdb"), before[:100], 0o600)).To(Succeed())
		Eventually(log.String).WithTimeout(10 * time.Second).Should(ContainSubstring("the new file is not used"))
		Expect(os.ReadFile(k.Copies().Country)).To(Equal(before))
		Expect(testkit.WriteCountries(at("a.mmdb"), map[string]string{"192.0.2.0/24": "AT"})).To(Succeed())
		Eventually(log.String).WithTimeout(10 * time.Second).Should(ContainSubstring("a database was replaced"))
		country, _ := k.Where(netip.MustParseAddr("192.0.2.7"))
		Expect(country).To(Equal("AT"))
	})
})
