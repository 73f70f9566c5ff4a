package client_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

var _ = Describe("Values from outside of a document", func() {
	read := func(text string) (client.Document, error) {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "key.pem"), []byte("line 1\nline \"2\"\n"), 0o600)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600)).To(Succeed())
		env := map[string]string{"IP": "10.0.0.1", "PORT": "8080", "EMPTY": "", "YES": "yes", "SECRET": "s3cret \"word\""}
		return client.ReadDocument(client.Files{Paths: []string{filepath.Join(dir, "a.yaml")}, Env: func(name string) (string, bool) {
			value, set := env[name]
			return value, set
		}}, nil)
	}

	DescribeTable("are put in as texts", func(value, want string) {
		doc, err := read("version: 1\nupstreams:\n- x: " + value + "\n")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(doc.Data)).To(Equal("version: 1\nupstreams:\n    - x: " + want + "\n"))
	},
		Entry(nil, "!env IP", `"10.0.0.1"`),
		Entry(nil, "!env PORT", `"8080"`),
		Entry(nil, "!env YES", `"yes"`),
		Entry(nil, "!env EMPTY", `""`),
		Entry(nil, "!env NONE:-a b", `"a b"`),
		Entry(nil, "!env EMPTY:-x", `"x"`),
		Entry(nil, "!env 'NONE:-'", `""`),
		Entry(nil, "!file key.pem", `"line 1\nline \"2\""`),
		Entry(nil, `!expand "https://${IP}:${PORT}/${NONE:-a}"`, `"https://10.0.0.1:8080/a"`),
		Entry(nil, `!expand "$${IP} $5 {IP} ${file:key.pem}"`, `"${IP} $5 {IP} line 1\nline \"2\""`),
		Entry("inside of a configuration", "{a: [!env IP]}", `{a: ["10.0.0.1"]}`),
	)

	It("leave every other document as it is", func() {
		for _, text := range []string{
			"version: 1\nfilters: [{x: \"${IP} $IP ${file:key.pem}\"}]  # ${PORT}\n",
			"version: 1\nfilters:\n- script: |\n    if x then return \"${IP}\" end\n",
		} {
			doc, err := read(text)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(doc.Data)).To(Equal(text))
		}
	})

	It("are all named with their places if they are missing", func() {
		_, err := read("version: 1\nupstreams:\n- x: !env NONE\n  y: !expand ${OTHER}-${THIRD}\n- z: !file none.pem\n  f: !env a-b\n")
		Expect(err).To(MatchError(MatchRegexp(`^\S+a\.yaml line 3: the variable NONE is not set; set it, or write NONE:-DEFAULT; ` +
			`\S+a\.yaml line 4: the variable OTHER is not set; [^;]+; the variable THIRD is not set; [^;]+; ` +
			`\S+a\.yaml line 5: open \S+none\.pem: no such file or directory; \S+a\.yaml line 6: "a-b" is not the name of a variable, nor NAME:-DEFAULT$`)))
	})

	It("are refused on request", func() {
		path := filepath.Join(GinkgoT().TempDir(), "a.yaml")
		Expect(os.WriteFile(path, []byte("version: 1\nupstreams:\n- x: !file /etc/passwd\n"), 0o600)).To(Succeed())
		_, err := client.ReadDocument(client.Files{Paths: []string{path}}, nil)
		Expect(err).To(MatchError(path + " line 3: !file is not allowed here (--no-expand)"))
	})

	It("are not in errors, which name the lines of the file", func() {
		doc, err := read("version: 1\n\nupstreams:\n\n- upstream_port: !env SECRET\n  upstream_weight: !env PORT\n  x: !file key.pem\n")
		Expect(err).NotTo(HaveOccurred())
		c := serverOf(client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 400, "application/problem+json", `{"detail":"line 3: \"8080\" and s3cret \"word\" and \"line 1\\nline \\\"2\\\"\" at 80","errors":[`+
				`{"field":"line 4: upstreams[0].upstream_weight","message":"\"s3cret \\\"word\\\"\" is wrong"}]}`)
		})
		_, _, err = c.ApplyConfig(GinkgoT().Context(), doc, client.Apply{})
		refused, ok := errors.AsType[*client.Error](err)
		Expect(ok).To(BeTrue())
		Expect(refused.Detail).To(MatchRegexp(`^\S+a\.yaml line 5: "\$\{PORT\}" and \$\{SECRET\} and "\$\{file:\S+key\.pem\}" at 80$`))
		Expect(refused.Fields[0].Field).To(HaveSuffix("a.yaml line 6: upstreams[0].upstream_weight"))
		Expect(refused.Fields[0].Message).To(Equal(`"${SECRET}" is wrong`))
	})
})
