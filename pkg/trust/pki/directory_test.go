package pki_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

var _ = Describe("A directory", func() {
	var l lab
	var now time.Time
	BeforeEach(func() {
		now = time.Now().Truncate(time.Second)
		l = newLab(now)
	})
	replace := func(r *pki.Request) { r.Replace = true }
	renew := func(at time.Time, file string, lifetime time.Duration) (e pki.Entry, err error) {
		err = l.do(func(d *pki.Directory) (err error) {
			e, err = d.Renew(file, at, lifetime)
			return err
		})
		return e, err
	}

	It("is readable by its owner only", func() {
		l.issue(now, "proxy", "edge")
		Expect(l.names()).To(Equal([]string{"ca.crl", "ca.crt", "ca.key", "edge.crt", "edge.key", "issued"}))
		Expect(filepath.WalkDir(l.dir, func(path string, e os.DirEntry, err error) error {
			Expect(err).NotTo(HaveOccurred())
			info, err := e.Info()
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(map[bool]os.FileMode{true: 0o700, false: 0o600}[e.IsDir()]), path)
			return nil
		})).To(Succeed())
	})

	It("has the same modes whatever the umask", func() {
		before := syscall.Umask(0o277)
		defer syscall.Umask(before)
		other := newLab(now)
		other.issue(now, "proxy", "edge")
		for _, name := range []string{"ca.key", "edge.crt", "edge.key"} {
			info, err := os.Stat(other.file(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)), name)
		}
	})

	It("is not created where others can write, nor a second time, nor without its parent", func() {
		_, err := pki.Create(l.dir, now, day)
		Expect(err).To(MatchError(And(ContainSubstring("ca.crt exists, and an authority is not replaced"), ContainSubstring("in another directory"))))
		open := filepath.Join(GinkgoT().TempDir(), "open")
		Expect(os.Mkdir(open, 0o700)).To(Succeed())
		Expect(os.Chmod(open, 0o770)).To(Succeed())
		_, err = pki.Create(open, now, day)
		Expect(err).To(MatchError(ContainSubstring("has mode 0770, and others can put files into it (chmod 700 " + open)))
		Expect(os.Chmod(open, 0o755)).To(Succeed())
		_, err = pki.Create(open, now, day)
		Expect(err).NotTo(HaveOccurred())
		_, err = pki.Create(filepath.Join(open, "a", "b"), now, day)
		Expect(err).To(MatchError(ContainSubstring("mkdir -p " + filepath.Join(open, "a"))))
		_, err = pki.Create(filepath.Join(open, "ca.crt"), now, day)
		Expect(err).To(MatchError(ContainSubstring("is not a directory")))
		_, err = pki.Open(filepath.Join(open, "none"))
		Expect(err).To(MatchError(ContainSubstring("has no authority (name the directory of one, or make it: gatehouse pki init ")))
	})

	It("keeps existing files", func() {
		l.issue(now, "proxy", "edge")
		l.issue(now, "server", "", "a.example", "10.0.0.1")
		cert, key := l.read("edge.crt"), l.read("edge.key")
		_, err := l.try(now, "proxy", "edge", nil, nil)
		Expect(err).To(MatchError(And(ContainSubstring("edge.crt exists and ends on "), ContainSubstring("gatehouse pki renew "+l.dir+" edge.crt"), ContainSubstring("--force"))))
		_, err = l.try(now, "proxy", "other", nil, func(r *pki.Request) { r.File, r.Replace = "edge", true })
		Expect(err).To(MatchError(ContainSubstring("edge.crt is for proxy edge, and is not replaced by one for proxy other")))
		Expect([]string{l.read("edge.crt"), l.read("edge.key")}).To(Equal([]string{cert, key}))

		By("a pair is replaced if that is allowed")
		_, err = l.try(now, "proxy", "edge", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.read("edge.crt")).NotTo(Equal(cert))
		Expect(l.read("edge.key")).NotTo(Equal(key))
		_, err = tls.LoadX509KeyPair(l.file("edge.crt"), l.file("edge.key"))
		Expect(err).NotTo(HaveOccurred())
		e, err := l.try(now, "server", "", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		Expect(e.SANs).To(Equal([]string{"a.example", "10.0.0.1"}))

		By("files of other origin are kept")
		foreign := newLab(now)
		foreign.issue(now, "proxy", "foreign")
		l.write("foreign.crt", foreign.read("foreign.crt"))
		_, err = l.try(now, "proxy", "foreign", nil, replace)
		Expect(err).To(MatchError(ContainSubstring("foreign.crt is not a certificate of this authority")))
		l.write("junk.crt", "junk")
		_, err = l.try(now, "proxy", "junk", nil, replace)
		Expect(err).To(MatchError(ContainSubstring("not a certificate of this authority")))
		l.write("alone.key", "junk")
		_, err = l.try(now, "proxy", "alone", nil, nil)
		Expect(err).To(MatchError(ContainSubstring("alone.key exists, without ")))
		Expect(l.read("alone.key")).To(Equal("junk"))
	})

	It("accepts a proxy named like a purpose, and several servers", func() {
		e, err := l.try(now, "proxy", "server", nil, func(r *pki.Request) { r.File = "proxy-server" })
		Expect(err).NotTo(HaveOccurred())
		Expect(e.SANs).To(Equal([]string{"spiffe://gatehouse/proxy/server"}))
		_, err = l.try(now, "server", "", []string{"a"}, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = l.try(now, "server", "", []string{"b"}, func(r *pki.Request) { r.File = "server-b" })
		Expect(err).NotTo(HaveOccurred())
		for _, bad := range []string{"ca", "../x", "a/b", "ratelimit"} {
			_, err = l.try(now, "server", "", []string{"b"}, func(r *pki.Request) { r.File = bad })
			Expect(err).To(HaveOccurred(), bad)
		}
		Expect(l.names()).To(Equal([]string{"ca.crl", "ca.crt", "ca.key", "issued", "proxy-server.crt", "proxy-server.key", "server-b.crt", "server-b.key", "server.crt", "server.key"}))
	})

	It("renews with the same key, so that a reader finds a matching pair at any moment", func() {
		first := l.issue(now, "proxy", "edge")
		key := l.read("edge.key")
		done := make(chan error, 1)
		stop := make(chan struct{})
		go func() {
			for {
				if _, err := tls.LoadX509KeyPair(l.file("edge.crt"), l.file("edge.key")); err != nil {
					done <- err
					return
				}
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
			}
		}()
		for i := range 50 {
			e, err := renew(now.Add(time.Duration(i)*day), "edge.crt", 0)
			Expect(err).NotTo(HaveOccurred())
			Expect(e.NotAfter).To(BeTemporally("==", now.Add(time.Duration(90+i)*day)))
			Expect(e.Serial).NotTo(Equal(first.Serial))
		}
		close(stop)
		Expect(<-done).To(Succeed())
		Expect(l.read("edge.key")).To(Equal(key))
		Expect(l.list(now)).To(HaveLen(1 + 51))

		By("another lifetime on request")
		e, err := renew(now, filepath.Join(l.dir, "edge.crt"), 10*day)
		Expect(err).NotTo(HaveOccurred())
		Expect(e.NotAfter).To(BeTemporally("==", now.Add(10*day)))
	})

	It("does not renew what is revoked, missing or not a pair", func() {
		l.issue(now, "proxy", "edge")
		l.issue(now, "proxy", "other")
		l.write("other.key", l.read("edge.key"))
		l.revoke(now, "edge.crt")
		for file, want := range map[string]string{
			"edge.crt":       "edge.crt was revoked, and its key is not used again (gatehouse pki issue " + l.dir + " proxy edge --force makes a new key)",
			"other.crt":      "other.key is not the key of ",
			"none.crt":       "none.crt does not exist (see gatehouse pki list",
			"edge":           "is not the name of a certificate, NAME.crt",
			"/else/edge.crt": "is not in " + l.dir,
			"ca.crt":         "the authority itself is neither renewed nor revoked",
		} {
			_, err := renew(now, file, 0)
			Expect(err).To(MatchError(ContainSubstring(want)), file)
		}
	})

	It("reports what is due", func() {
		l.issue(now, "proxy", "late")
		_, err := l.try(now, "proxy", "soon", nil, func(r *pki.Request) { r.Lifetime = 20 * day })
		Expect(err).NotTo(HaveOccurred())
		_, err = l.try(now, "proxy", "gone", nil, func(r *pki.Request) { r.Lifetime = 10 * day })
		Expect(err).NotTo(HaveOccurred())
		l.revoke(now, "gone.crt")
		due := func(before time.Duration) (files []string, next string) {
			Expect(l.do(func(d *pki.Directory) error {
				list, first, err := d.Due(now, now.Add(before))
				for _, e := range list {
					files = append(files, e.File)
				}
				if first != nil {
					next = first.File
				}
				return err
			})).To(Succeed())
			return files, next
		}
		files, next := due(30 * day)
		Expect(files).To(Equal([]string{"soon.crt"}))
		Expect(next).To(Equal("late.crt"))
		files, next = due(day)
		Expect(files).To(BeEmpty())
		Expect(next).To(Equal("soon.crt"))
	})

	It("keeps owner and mode of a file that it replaces", func() {
		l.issue(now, "proxy", "edge")
		uid := os.Getuid()
		if uid == 0 {
			uid = 10001
		}
		for _, name := range []string{"edge.crt", "edge.key"} {
			Expect(os.Chown(l.file(name), uid, os.Getgid())).To(Succeed())
			Expect(os.Chmod(l.file(name), 0o640)).To(Succeed())
		}
		_, err := renew(now, "edge.crt", 0)
		Expect(err).NotTo(HaveOccurred())
		_, err = l.try(now, "proxy", "edge", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"edge.crt", "edge.key"} {
			info, err := os.Stat(l.file(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o640)))
			Expect(info.Sys().(*syscall.Stat_t).Uid).To(BeEquivalentTo(uid))
		}
	})

	It("revokes all certificates of a name, and all with the key of a serial", func() {
		one := l.issue(now, "proxy", "edge")
		two, err := renew(now, "edge.crt", 0)
		Expect(err).NotTo(HaveOccurred())
		three, err := l.try(now, "proxy", "edge", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		other := l.issue(now, "proxy", "other")
		serials := func(list []pki.Entry) (out []string) {
			for _, e := range list {
				Expect(e.RevokedAt).NotTo(BeNil())
				out = append(out, e.Serial)
			}
			return out
		}
		Expect(serials(l.revoke(now, two.Serial))).To(ConsistOf(one.Serial, two.Serial))
		Expect(serials(l.revoke(now, strings.ToUpper(one.Serial[:2]+":"+one.Serial[2:])))).To(BeEmpty(), "they are revoked")
		four, err := l.try(now, "proxy", "edge", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		Expect(serials(l.revoke(now, "edge.crt"))).To(ConsistOf(three.Serial, four.Serial))
		five, err := l.try(now, "proxy", "edge", nil, replace)
		Expect(err).NotTo(HaveOccurred())
		var valid []string
		for _, e := range l.list(now)[1:] {
			if e.RevokedAt == nil {
				valid = append(valid, e.Serial)
			}
		}
		Expect(valid).To(ConsistOf(five.Serial, other.Serial))
		for what, want := range map[string]string{
			"none.crt": "none.crt does not exist", "zz": `"zz" is neither NAME.crt nor a serial`, "": "neither NAME.crt nor a serial",
			"abcdef": "no certificate of " + l.dir + " has the serial abcdef", "ca.crt": "the authority itself",
		} {
			Expect(l.do(func(d *pki.Directory) error {
				_, err := d.Revoke(what, now)
				return err
			})).To(MatchError(ContainSubstring(want)))
		}
	})

	It("lists what has not expired or is in a file", func() {
		l.issue(now, "proxy", "edge")
		later := now.Add(80 * day)
		e, err := renew(later, "edge.crt", 0)
		Expect(err).NotTo(HaveOccurred())
		l.issue(now, "ratelimit", "")
		list := l.list(now.Add(100 * day))
		Expect(list).To(HaveLen(3))
		Expect(list[0].What).To(Equal("authority"))
		Expect(list[1]).To(And(HaveField("What", "proxy edge"), HaveField("File", "edge.crt"), HaveField("Serial", e.Serial), HaveField("RevokedAt", BeNil())))
		Expect(list[2]).To(And(HaveField("What", "ratelimit"), HaveField("File", "ratelimit.crt")))
		Expect(l.list(now.Add(81*day))).To(HaveLen(4), "the one that was replaced is still valid")
	})

	It("requires its list and the right key, which nobody else can read", func() {
		fails := func(want string) {
			GinkgoHelper()
			_, err := l.try(now, "proxy", "edge", nil, nil)
			Expect(err).To(MatchError(ContainSubstring(want)))
			Expect(l.names()).NotTo(ContainElement(HavePrefix("edge")))
		}
		Expect(os.Chmod(l.file("ca.key"), 0o640)).To(Succeed())
		fails("ca.key has mode 0640, and whoever can read it can act as any proxy (chmod 600 ")
		Expect(os.Chmod(l.file("ca.key"), 0o600)).To(Succeed())
		foreign := newLab(now)
		key, crl := l.read("ca.key"), l.read("ca.crl")
		l.write("ca.key", foreign.read("ca.key"))
		fails("ca.key is not the key of ")
		Expect(os.Remove(l.file("ca.key"))).To(Succeed())
		fails("restore it from where it is kept")
		Expect(l.list(now)).To(HaveLen(1), "a list needs no key")
		l.write("ca.key", key)
		l.write("ca.crl", foreign.read("ca.crl"))
		fails("ca.crl: ")
		Expect(os.Remove(l.file("ca.crl"))).To(Succeed())
		fails("what was revoked would be valid again")
		l.write("ca.crl", crl)
		l.issue(now, "proxy", "edge")
	})

	It("lets one program at a time work", func() {
		d, err := pki.Open(l.dir)
		Expect(err).NotTo(HaveOccurred())
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			l.issue(now, "proxy", "edge")
		}()
		Consistently(done, "100ms").ShouldNot(BeClosed())
		d.Close()
		Eventually(done).Should(BeClosed())
	})
})

var _ = Describe("An interrupted run", func() {
	var l lab
	var now time.Time
	var oldCert, oldKey, newCert, newKey, renewed string
	BeforeEach(func() {
		now = time.Now().Truncate(time.Second)
		l = newLab(now)
		l.issue(now, "proxy", "edge")
		oldCert, oldKey = l.read("edge.crt"), l.read("edge.key")
		Expect(l.do(func(d *pki.Directory) error { _, err := d.Renew("edge.crt", now, 0); return err })).To(Succeed())
		renewed = l.read("edge.crt")
		_, err := l.try(now, "proxy", "edge", nil, func(r *pki.Request) { r.Replace = true })
		Expect(err).NotTo(HaveOccurred())
		newCert, newKey = l.read("edge.crt"), l.read("edge.key")
		l.write("edge.crt", oldCert)
		l.write("edge.key", oldKey)
	})
	// after returns the result of the next run, and checks that nothing is left over.
	after := func() (cert, key string) {
		GinkgoHelper()
		l.list(now)
		Expect(l.names()).To(Equal([]string{"ca.crl", "ca.crt", "ca.key", "edge.crt", "edge.key", "issued"}))
		entries, err := os.ReadDir(l.file("issued"))
		Expect(err).NotTo(HaveOccurred())
		for _, e := range entries {
			Expect(e.Name()).NotTo(HavePrefix("."))
		}
		return l.read("edge.crt"), l.read("edge.key")
	}

	It("changes nothing if it has not replaced a file yet, and its certificate is not listed", func() {
		l.write(".edge.key.new", newKey)
		l.write(".edge.crt.new", newCert)
		cert, key := after()
		Expect(cert).To(Equal(oldCert))
		Expect(key).To(Equal(oldKey))
		Expect(l.list(now)).To(HaveLen(1 + 2))
	})

	It("changes nothing if it was writing", func() {
		l.write(".edge.key.new", newKey[:20])
		cert, key := after()
		Expect([]string{cert, key}).To(Equal([]string{oldCert, oldKey}))
		l.write(".edge.key.new", newKey)
		l.write(".edge.crt.new", newCert[:100])
		cert, key = after()
		Expect([]string{cert, key}).To(Equal([]string{oldCert, oldKey}))
		l.write(".edge.crt.new", renewed[:100])
		l.write(".ca.crl.new", "-----BEGIN")
		l.write("issued/.ab.crt.new", "-----BEGIN")
		cert, key = after()
		Expect([]string{cert, key}).To(Equal([]string{oldCert, oldKey}))
	})

	It("between key and certificate is completed by the next run", func() {
		l.write("edge.key", newKey)
		l.write(".edge.crt.new", newCert)
		cert, key := after()
		Expect([]string{cert, key}).To(Equal([]string{newCert, newKey}))
	})

	It("in a renewal is completed by the next run, and recorded", func() {
		l.write(".edge.crt.new", renewed)
		Expect(os.RemoveAll(l.file("issued"))).To(Succeed())
		Expect(os.Mkdir(l.file("issued"), 0o700)).To(Succeed())
		cert, key := after()
		Expect([]string{cert, key}).To(Equal([]string{renewed, oldKey}))
		Expect(l.list(now)[1]).To(HaveField("File", "edge.crt"))
	})

	It("leaves nothing of another authority", func() {
		foreign := newLab(now)
		foreign.issue(now, "proxy", "edge")
		l.write("edge.key", foreign.read("edge.key"))
		l.write(".edge.crt.new", foreign.read("edge.crt"))
		cert, _ := after()
		Expect(cert).To(Equal(oldCert))
		l.write("edge.key", oldKey)
		l.write(".edge.crt.new", newCert)
		cert, key := after()
		Expect([]string{cert, key}).To(Equal([]string{oldCert, oldKey}), "its key was never written")
	})

	It("leaves no authority or a complete one", func() {
		cert, key, crl := l.read("ca.crt"), l.read("ca.key"), l.read("ca.crl")
		other := lab{filepath.Join(GinkgoT().TempDir(), "pki")}
		begin := func() {
			Expect(os.RemoveAll(other.dir)).To(Succeed())
			Expect(os.MkdirAll(other.file("issued"), 0o700)).To(Succeed())
			other.write("ca.crl", crl)
			other.write(".ca.crt.new", cert)
		}
		begin()
		other.write(".ca.key.new", key)
		_, err := pki.Open(other.dir)
		Expect(err).To(MatchError(ContainSubstring("has no authority")))
		Expect(other.names()).To(BeEmpty())
		begin()
		other.write(".ca.key.new", key)
		_, err = pki.Create(other.dir, now, day)
		Expect(err).NotTo(HaveOccurred())
		Expect(other.read("ca.key")).NotTo(Equal(key))
		begin()
		other.write("ca.key", key)
		other.issue(now, "proxy", "edge")
		Expect(other.read("ca.crt")).To(Equal(cert))

		By("a complete authority is never removed")
		l.write(".ca.key.new", key)
		l.write(".ca.crt.new", cert)
		after()
		Expect([]string{l.read("ca.crt"), l.read("ca.key"), l.read("ca.crl")}).To(Equal([]string{cert, key, crl}))
	})

	It("leaves nothing behind after a failure", func() {
		Expect(os.Rename(l.file("issued"), l.file("elsewhere"))).To(Succeed())
		_, err := l.try(now, "proxy", "late", nil, nil)
		Expect(err).To(MatchError(ContainSubstring("late.crt: ")))
		Expect(l.names()).To(Equal([]string{"ca.crl", "ca.crt", "ca.key", "edge.crt", "edge.key", "elsewhere"}))
	})
})
