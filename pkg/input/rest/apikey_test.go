package rest_test

import (
	"crypto/sha1" //nolint:gosec // what Envoy compares
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const emptyHash = "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="

// makeKey creates a key and returns it with its stored form.
func (a *api) makeKey(set, name, more string) (key, hash string) {
	GinkgoHelper()
	got := a.post("/keyset/"+set+"/key", "Key_name="+name+more)
	Expect(got.status).To(Equal(201), got.body)
	var made struct{ Data struct{ Key string } }
	Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
	key = made.Data.Key
	Expect(got.body).To(Equal(`{"data":{"insert_core_db_key":{"affected_rows":1},"key":"` + key + `"}}`))
	Expect(got.header.Get("Cache-Control")).To(Equal("no-store"))
	Expect(got.header.Get("Location")).To(Equal("/keyset/" + set + "/key/" + name))
	plain, err := base64.StdEncoding.DecodeString(key)
	Expect(err).NotTo(HaveOccurred())
	secret, ok := strings.CutPrefix(string(plain), set+"/"+name+":")
	Expect(ok).To(BeTrue(), "%q", plain)
	Expect(secret).To(HaveLen(24))
	sum := sha1.Sum([]byte(secret)) //nolint:gosec // see above
	return key, "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

func keyJSON(id, name, hash, description string) string {
	return `{"key_id":` + id + `,"keyset_name":"partners","key_name":"` + name + `","key_hash":"` + hash + `","key_description":"` + description +
		`","key_expires":"","tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
}

var _ = Describe("An API key", func() {
	It("is shown once, in the answer that creates it", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=partners")
		a.get("/keyset/partners/key").expectJSON(200, `{"data":{"core_db_key":[]}}`)
		key, hash := a.makeKey("partners", "mobile", "&Key_description=the+app")
		other, otherHash := a.makeKey("partners", "mobile-2", "")
		Expect(other).NotTo(Equal(key))
		Expect(otherHash).NotTo(Equal(hash))
		a.post("/keyset/partners/key", "Key_name=mobile").expectProblem(409, refused(409, "already_exists", "The name is taken",
			`key \"mobile\" of keyset \"partners\" already exists; choose another name, or delete the existing one first`, "/keyset/partners/key"))

		for _, path := range []string{"/keyset/partners/key", "/keyset/partners/key/mobile", "/revision", "/revision/2", "/config", "/config?secrets=sealed"} {
			got := a.get(path)
			Expect(got.status).To(Equal(200), path)
			Expect(got.body).NotTo(ContainSubstring(key), path)
			secret, err := base64.StdEncoding.DecodeString(key)
			Expect(err).NotTo(HaveOccurred())
			Expect(got.body).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString(secret[len(secret)-24:])), path)
		}
		a.get("/keyset/partners/key/mobile").expectJSON(200, `{"data":{"core_db_key":[`+keyJSON("1", "mobile", hash, "the app")+`]}}`)
		Expect(a.get("/config").body).To(ContainSubstring("keysets:\n- keyset_name: partners\n  keys:\n  - key_name: mobile\n    key_hash: '" + hash +
			"'\n    key_description: the app\n  - key_name: mobile-2\n    key_hash: '" + otherHash + "'\n"))
	})

	It("may be generated elsewhere and sent as its hash, which PUT requires", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=partners")
		made := `{"data":{"insert_core_db_key":{"affected_rows":1}}}`
		a.postJSON("/keyset/partners/key", `{"Key_name":"old","key_hash":"`+emptyHash+`"}`).expectWrite(201, made, "2")
		bad := "must be {SHA} and the base64 of the SHA-1 of the secret; POST without it makes a key"
		a.put("/keyset/partners/key/new", "Key_description=x").expectProblem(400, invalid("/keyset/partners/key/new", "Key_hash", bad))
		for _, hash := range []string{"", "x", "{SHA}", "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwl=", "{SSHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=", emptyHash + "\n", emptyHash + "\nx/y:" + emptyHash} {
			body, err := json.Marshal(map[string]string{"Key_name": "bad", "Key_hash": hash})
			Expect(err).NotTo(HaveOccurred())
			a.postJSON("/keyset/partners/key", string(body)).expectProblem(400, invalid("/keyset/partners/key", "Key_hash", bad))
		}
		a.do("PUT", "/keyset/partners/key/new", "application/json", strings.NewReader(`{"key_hash":"`+emptyHash+`"}`)).expectWrite(201, made, "3")
		a.patch("/keyset/partners/key/new", "Key_description=x").expectWrite(200, `{"data":{"update_core_db_key":{"affected_rows":1}}}`, "4")
		a.get("/keyset/partners/key/new").expectJSON(200, `{"data":{"core_db_key":[`+keyJSON("2", "new", emptyHash, "x")+`]}}`)
		long := strings.Repeat("x", 201)
		a.patch("/keyset/partners/key/new", "Key_description="+long).expectProblem(400, invalid("/keyset/partners/key/new",
			"Key_description", "has 201 characters; at most 200 are allowed"))
	})

	It("is revoked by DELETE, and with its set", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=partners")
		a.makeKey("partners", "a", "")
		a.makeKey("partners", "b", "")
		a.delete("/keyset/partners/key/a").expectWrite(200, `{"data":{"delete_core_db_key":{"affected_rows":1}}}`, "4")
		a.get("/keyset/partners/key/a").expectProblem(404, unknown("/keyset/partners/key/a", `key \"a\" of keyset \"partners\" does not exist`))
		a.delete("/keyset/partners").expectWrite(200, `{"data":{"delete_core_db_keyset":{"affected_rows":1}}}`, "5")
		a.get("/keyset/partners/key").expectProblem(404, unknown("/keyset/partners/key", `keyset \"partners\" does not exist`))
	})

	It("is not shown by a dry run, which generates none", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=partners")
		got := a.post("/keyset/partners/key?dry_run=true", "Key_name=a")
		Expect(got.status).To(Equal(200))
		Expect(got.body).NotTo(ContainSubstring(`"key":`))
		a.get("/keyset/partners/key").expectJSON(200, `{"data":{"core_db_key":[]}}`)
	})

	It("belongs to a set", func() {
		a := startAPI()
		a.post("/keyset/none/key", "Key_name=a").expectProblem(404, unknown("/keyset/none/key", `keyset \"none\" does not exist`))
		a.given("/keyset", "Keyset_name=a&tags=x")
		a.post("/keyset", "Keyset_name=c").expectWrite(201, `{"data":{"insert_core_db_keyset":{"affected_rows":1}}}`, "2")
		Expect(a.get("/keyset/c").body).To(ContainSubstring(`"keyset_name":"c","tags":[]`))
		a.patch("/keyset/a", "tags=y").expectWrite(200, `{"data":{"update_core_db_keyset":{"affected_rows":1}}}`, "3")
		a.put("/keyset/b", "tags=z").expectWrite(201, `{"data":{"insert_core_db_keyset":{"affected_rows":1}}}`, "4")
		Expect(a.get("/keyset?tag=z").body).To(And(ContainSubstring(`"keyset_name":"b"`), Not(ContainSubstring(`"keyset_name":"a"`))))
		a.get("/keyset/a/filter").expectJSON(200, `{"data":{"core_db_filter":[]}}`)
	})
})

var _ = Describe("The end of an API key", func() {
	It("is a time in the form of RFC 3339, in forms and documents", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=partners")
		for _, bad := range []string{"tomorrow", "2027-01-31", "2027-01-31T00:00:00", "2027-02-31T00:00:00Z", "1800000000", "2027-01-31T00:00:00Z "} {
			a.post("/keyset/partners/key", "Key_name=bad&Key_expires="+url.QueryEscape(bad)).expectProblem(400, invalid("/keyset/partners/key",
				"Key_expires", `\"`+bad+`\" is not a time in the form of RFC 3339, such as 2027-01-31T00:00:00Z`))
		}
		_, hash := a.makeKey("partners", "mobile", "&Key_expires=2027-01-31T00:00:00%2B01:00")
		Expect(a.get("/keyset/partners/key/mobile").body).To(ContainSubstring(`"key_expires":"2027-01-31T00:00:00+01:00"`))
		Expect(a.patch("/keyset/partners/key/mobile", "Key_expires=").status).To(Equal(200))
		Expect(a.get("/keyset/partners/key/mobile").body).To(ContainSubstring(`"key_expires":""`))
		for _, written := range []string{`2028-01-31T00:00:00Z`, `"2029-01-31T00:00:00Z"`} {
			document := "version: 1\nkeysets:\n- keyset_name: partners\n  keys:\n  - {key_name: mobile, key_hash: '" + hash + "', key_expires: " + written + "}\n"
			put := a.do("PUT", "/config", "application/yaml", strings.NewReader(document))
			Expect(put.status).To(Equal(200), put.body)
			Expect(a.get("/keyset/partners/key/mobile").body).To(ContainSubstring(`"key_expires":"` + strings.Trim(written, `"`) + `"`))
		}
	})
})
