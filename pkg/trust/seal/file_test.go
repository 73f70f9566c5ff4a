package seal_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func modeOf(path string) fs.FileMode {
	info, err := os.Stat(path)
	Expect(err).NotTo(HaveOccurred())
	return info.Mode().Perm()
}

func namesIn(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

var _ = Describe("creating", func() {
	It("creates a file for its owner only, and no other file", func() {
		_, path := newKeyring()
		Expect(modeOf(path)).To(Equal(fs.FileMode(0o600)))
		Expect(namesIn(filepath.Dir(path))).To(Equal([]string{"secret.key"}))
	})

	It("leaves an existing file alone", func() {
		path := keyFile(fixedKeyset)
		k, created, err := seal.OpenOrCreate(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(created).To(BeFalse())
		Expect(unsealed(k, fixedSealed, "secret/shop/value")).To(Equal("hunter2"))
		Expect(os.ReadFile(path)).To(BeEquivalentTo(fixedKeyset))
	})

	It("leaves a file without keys alone", func() {
		path := keyFile("")
		_, _, err := seal.OpenOrCreate(path)
		Expect(err).To(MatchError(ContainSubstring("does not hold a cleartext tink keyset in JSON")))
		Expect(os.ReadFile(path)).To(BeEmpty())
	})

	It("creates nothing if a symbolic link is broken", func() {
		path := filepath.Join(directory(), "secret.key")
		Expect(os.Symlink("nowhere", path)).To(Succeed())
		_, created, err := seal.OpenOrCreate(path)
		Expect(created).To(BeFalse())
		Expect(err).To(MatchError(ContainSubstring("does not exist")))
	})

	It("reports a missing directory", func() {
		path := filepath.Join(directory(), "none", "secret.key")
		_, _, err := seal.OpenOrCreate(path)
		Expect(err).To(MatchError(HavePrefix("the key file " + path + " cannot be written (create the directory first: mkdir -p " + filepath.Dir(path) + ")")))
	})

	It("results in one key when many goroutines start at the same time", func() {
		path := filepath.Join(directory(), "secret.key")
		var (
			all     sync.WaitGroup
			mu      sync.Mutex
			created int
			texts   = map[string]int{}
		)
		for range 16 {
			all.Go(func() {
				defer GinkgoRecover()
				k, mine, err := seal.OpenOrCreate(path)
				Expect(err).NotTo(HaveOccurred())
				text := sealed(k, "text", "place")
				mu.Lock()
				defer mu.Unlock()
				if mine {
					created++
				}
				texts[text]++
			})
		}
		all.Wait()
		Expect(created).To(Equal(1))
		Expect(texts).To(HaveLen(1))
		Expect(namesIn(filepath.Dir(path))).To(Equal([]string{"secret.key"}))
	})

	It("results in one key when processes start at the same time", func() {
		path := filepath.Join(directory(), "secret.key")
		var (
			all   sync.WaitGroup
			mu    sync.Mutex
			texts = map[string]int{}
		)
		for range 4 {
			all.Go(func() {
				defer GinkgoRecover()
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), createVariable+"="+path)
				out, err := cmd.Output()
				Expect(err).NotTo(HaveOccurred())
				mu.Lock()
				defer mu.Unlock()
				texts[string(out)]++
			})
		}
		all.Wait()
		Expect(texts).To(Equal(map[string]int{sealed(open(path), "text", "place"): 4}))
	})
})

var _ = Describe("opening", func() {
	DescribeTable("accepts a mode", func(mode fs.FileMode) {
		path := keyFile(fixedKeyset)
		Expect(os.Chmod(path, mode)).To(Succeed())
		open(path)
	},
		Entry(nil, fs.FileMode(0o600)),
		Entry(nil, fs.FileMode(0o400)),
		Entry("with fsGroup in Kubernetes", fs.FileMode(0o440)),
		Entry("with fsGroup in Kubernetes", fs.FileMode(0o640)),
	)

	DescribeTable("refuses a mode", func(mode fs.FileMode, shown string) {
		path := keyFile(fixedKeyset)
		Expect(os.Chmod(path, mode)).To(Succeed())
		_, err := seal.Open(path)
		Expect(err).To(MatchError("the key file " + path + " has mode " + shown + ", which gives too many users access (chmod 600 " + path +
			" (0640 at most); in Kubernetes set defaultMode: 0400 on the volume)"))
		Expect(model.IsKind(err, model.Unavailable)).To(BeTrue())
	},
		Entry(nil, fs.FileMode(0o644), "0644"),
		Entry(nil, fs.FileMode(0o604), "0604"),
		Entry(nil, fs.FileMode(0o602), "0602"),
		Entry(nil, fs.FileMode(0o660), "0660"),
		Entry(nil, fs.FileMode(0o666), "0666"),
	)

	// A key of AES-GCM.
	const otherType = `{"primaryKeyId":7,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.AesGcmKey",` +
		`"value":"GhAAAQIDBAUGBwgJCgsMDQ4P","keyMaterialType":"SYMMETRIC"},"status":"ENABLED","keyId":7,"outputPrefixType":"TINK"}]}`

	DescribeTable("refuses what it cannot use, and quotes none of it", func(content, wrong string) {
		path := keyFile(content)
		_, err := seal.Open(path)
		Expect(err).To(MatchError("the key file " + path + " " + wrong + " (make one with: tinkey create-keyset --key-template AES256_SIV --out-format json)"))
		Expect(model.IsKind(err, model.Unavailable)).To(BeTrue())
	},
		Entry("nothing", "", "does not hold a cleartext tink keyset in JSON"),
		Entry("a password", "hunter2", "does not hold a cleartext tink keyset in JSON"),
		Entry("other JSON", `{"hunter2":1}`, "does not hold a cleartext tink keyset in JSON"),
		Entry("an encrypted keyset", `{"encryptedKeyset":"aHVudGVyMg=="}`, "does not hold a cleartext tink keyset in JSON"),
		Entry("a keyset without keys", `{"primaryKeyId":1,"key":[]}`, "does not hold a cleartext tink keyset in JSON"),
		Entry("half a keyset", fixedKeyset[:200], "does not hold a cleartext tink keyset in JSON"),
		Entry("half a key", strings.Replace(fixedKeyset, fixedKey, "EiAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==", 1), "holds a key that is not AES256-SIV"),
		Entry("a disabled primary key", strings.Replace(fixedKeyset, "ENABLED", "DISABLED", 1), "does not hold a cleartext tink keyset in JSON"),
		Entry("a missing primary key", strings.Replace(fixedKeyset, `"primaryKeyId":16909060`, `"primaryKeyId":1`, 1), "does not hold a cleartext tink keyset in JSON"),
		Entry("another type of key", otherType, "holds a key that is not AES256-SIV"),
	)

	It("reports a missing file", func() {
		path := filepath.Join(directory(), "secret.key")
		_, err := seal.Open(path)
		Expect(err).To(MatchError("the key file " + path + " does not exist (restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it)"))
		Expect(namesIn(filepath.Dir(path))).To(BeEmpty())
	})

	It("reports an unreadable file", func() {
		path := filepath.Join(keyFile(""), "below-a-file")
		_, err := seal.Open(path)
		Expect(err).To(MatchError(HavePrefix("the key file " + path + " cannot be read (the user that runs the program needs to read it): ")))
	})

	It("refuses a directory, and a pipe without waiting for a writer", func() {
		pipe := filepath.Join(directory(), "pipe")
		Expect(syscall.Mkfifo(pipe, 0o600)).To(Succeed())
		for _, path := range []string{directory(), pipe} {
			_, err := seal.Open(path)
			Expect(err).To(MatchError("the key file " + path + " is not a regular file (name a file with --secret-key-file)"))
		}
	})
})

var _ = Describe("rotation", func() {
	It("seals with the new key and opens what the old one sealed", func() {
		path := keyFile(fixedKeyset)
		Expect(seal.Rotate(path)).To(Succeed())
		k := open(path)
		text := sealed(k, "hunter2", "secret/shop/value")
		Expect(text).NotTo(Equal(fixedSealed))
		Expect(unsealed(k, text, "secret/shop/value")).To(Equal("hunter2"))
		Expect(unsealed(k, fixedSealed, "secret/shop/value")).To(Equal("hunter2"))
		Expect(namesIn(filepath.Dir(path))).To(Equal([]string{"secret.key"}))
	})

	It("is noticed by a keyring that was opened earlier", func() {
		path := keyFile(fixedKeyset)
		opens, seals := open(path), open(path)
		Expect(seal.Rotate(path)).To(Succeed())
		text := sealed(open(path), "hunter2", "secret/shop/value")
		Expect(unsealed(opens, text, "secret/shop/value")).To(Equal("hunter2"))
		Expect(sealed(seals, "hunter2", "secret/shop/value")).To(Equal(text))
	})

	It("loses nothing that was sealed with the new key when the old keys are removed", func() {
		path := keyFile(fixedKeyset)
		before := open(path)
		Expect(seal.Rotate(path)).To(Succeed())
		Expect(seal.Rotate(path)).To(Succeed())
		text := sealed(before, "hunter2", "secret/shop/value")

		Expect(seal.RemoveOld(path, primary(path))).To(Equal(2))
		after := open(path)
		Expect(unsealed(after, text, "secret/shop/value")).To(Equal("hunter2"))
		_, err := after.Unseal(fixedSealed, "secret/shop/value")
		Expect(model.IsKind(err, model.Invalid)).To(BeTrue())
		Expect(seal.RemoveOld(path, primary(path))).To(Equal(0))
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).To(Equal(text))
	})

	It("is not undone by a simultaneous one", func() {
		_, path := newKeyring()
		var all sync.WaitGroup
		for range 32 {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(seal.Rotate(path)).To(Succeed())
			})
		}
		all.Wait()
		Expect(seal.RemoveOld(path, primary(path))).To(Equal(32))
	})

	It("works with the keys of other Tink programs, some without a prefix and some disabled", func() {
		raw := strings.Replace(fixedKeyset, `"TINK"`, `"RAW"`, 1)
		off := strings.TrimSuffix(strings.SplitN(fixedKeyset, `"key":[`, 2)[1], "]}")
		off = strings.NewReplacer("ENABLED", "DISABLED", "16909060", "5").Replace(off)
		path := keyFile(strings.TrimSuffix(raw, "]}") + "," + off + "]}")
		text := sealed(open(path), "hunter2", "secret/shop/value")
		Expect(text).To(Equal("sealed:v1:HLeYATzBZveNLsp0c8sVpWHkjxHJgO0"))

		Expect(seal.Rotate(path)).To(Succeed())
		Expect(unsealed(open(path), text, "secret/shop/value")).To(Equal("hunter2"))
		Expect(seal.RemoveOld(path, primary(path))).To(Equal(2))
	})

	It("keeps the mode, the owner and a symbolic link", func() {
		path := keyFile(fixedKeyset)
		Expect(os.Chmod(path, 0o440)).To(Succeed())
		uid, gid := os.Getuid(), os.Getgid()
		if uid == 0 { // only root can give files away
			uid, gid = 1234, 5678
			Expect(os.Chown(path, uid, gid)).To(Succeed())
		}
		link := filepath.Join(directory(), "link")
		Expect(os.Symlink(path, link)).To(Succeed())

		Expect(seal.Rotate(link)).To(Succeed())

		Expect(modeOf(path)).To(Equal(fs.FileMode(0o440)))
		info, err := os.Stat(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Sys().(*syscall.Stat_t).Uid).To(BeEquivalentTo(uid))
		Expect(info.Sys().(*syscall.Stat_t).Gid).To(BeEquivalentTo(gid))
		Expect(os.Readlink(link)).To(Equal(path))
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).NotTo(Equal(fixedSealed))
	})

	It("uses the key that was added before, which only opens until then", func() {
		path := keyFile(fixedKeyset)
		Expect(seal.Add(path)).To(Succeed())
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).To(Equal(fixedSealed))
		elsewhere := open(keyFile(content(path)))

		Expect(seal.Rotate(path)).To(Succeed())
		text := sealed(open(path), "hunter2", "secret/shop/value")
		Expect(text).NotTo(Equal(fixedSealed))
		Expect(unsealed(elsewhere, text, "secret/shop/value")).To(Equal("hunter2"))
		Expect(seal.RemoveOld(path, primary(path))).To(Equal(1))
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).To(Equal(text))
		By("and a new key after that")
		Expect(seal.Rotate(path)).To(Succeed())
		Expect(sealed(open(path), "hunter2", "secret/shop/value")).NotTo(Equal(text))
	})

	It("removes no key if another rotation happened in between", func() {
		path := keyFile(fixedKeyset)
		Expect(seal.Rotate(path)).To(Succeed())
		mine := primary(path)
		text := sealed(open(path), "hunter2", "secret/shop/value")
		Expect(seal.Rotate(path)).To(Succeed())

		removed, err := seal.RemoveOld(path, mine)
		Expect(removed).To(BeZero())
		Expect(err).To(MatchError("the key in " + path + " was changed meanwhile, and no key was removed " +
			"(run gatehouse secret-key remove-old once nobody else changes it)"))
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue())
		Expect(unsealed(open(path), fixedSealed, "secret/shop/value")).To(Equal("hunter2"))
		Expect(unsealed(open(path), text, "secret/shop/value")).To(Equal("hunter2"))
	})

	It("lets a program open with the keys in its memory after the old keys are removed", func() {
		path := keyFile(fixedKeyset)
		running := open(path)
		for range 3 {
			Expect(seal.Rotate(path)).To(Succeed())
			text := sealed(running, "hunter2", "secret/shop/value")
			Expect(seal.RemoveOld(path, primary(path))).To(Equal(1))
			Expect(running.Reload()).To(Succeed())
			Expect(unsealed(running, text, "secret/shop/value")).To(Equal("hunter2"))
			Expect(unsealed(running, fixedSealed, "secret/shop/value")).To(Equal("hunter2"))
			Expect(sealed(running, "hunter2", "secret/shop/value")).To(Equal(sealed(open(path), "hunter2", "secret/shop/value")))
		}
		_, err := open(path).Unseal(fixedSealed, "secret/shop/value")
		Expect(model.IsKind(err, model.Invalid)).To(BeTrue())
	})

	It("changes nothing if the file cannot be used", func() {
		broken := keyFile("hunter2")
		missing := filepath.Join(directory(), "secret.key")
		for path, line := range map[string]string{
			broken:  "does not hold a cleartext tink keyset in JSON",
			missing: "does not exist",
		} {
			Expect(seal.Rotate(path)).To(MatchError(ContainSubstring(line)))
			removed, err := seal.RemoveOld(path, 1)
			Expect(removed).To(BeZero())
			Expect(err).To(MatchError(ContainSubstring(line)))
		}
		Expect(os.ReadFile(broken)).To(BeEquivalentTo("hunter2"))
		Expect(namesIn(filepath.Dir(missing))).To(BeEmpty())
	})
})
