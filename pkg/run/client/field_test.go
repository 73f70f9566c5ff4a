package client_test

import (
	"encoding/json"
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

// bodyOf is the JSON that assignments of a kind make of a stored object.
func bodyOf(kind, stored string, args ...string) string {
	GinkgoHelper()
	k, err := client.FindKind(kind)
	Expect(err).NotTo(HaveOccurred())
	list, err := k.ParseAssignments(args, func(file string) (string, error) { return "content of " + file, nil })
	Expect(err).NotTo(HaveOccurred())
	body, err := k.Body(list, json.RawMessage(stored))
	Expect(err).NotTo(HaveOccurred())
	raw, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	return string(raw)
}

var _ = Describe("Kinds", func() {
	It("are all kinds of objects of the model", func() {
		var names []string
		for _, k := range client.Kinds() {
			names = append(names, k.Name)
		}
		Expect(names).To(ConsistOf("secret", "upstream", "keyset", "key", "consumer", "list", "filter", "globalconfig", "service", "route", "proxy"))
	})

	It("have columns that are fields", func() {
		columns := map[string]string{}
		for _, k := range client.Kinds() {
			columns[k.Name] = strings.Join(append([]string{k.NameField}, k.Columns...), " ")
		}
		Expect(columns).To(Equal(map[string]string{
			"upstream": "upstream_name upstream_ip upstream_port upstream_weight upstream_protocol", "service": "service_name fqdn",
			"route": "route_name route_prefix route_config", "proxy": "name http_port https_port listen_ip",
			"filter": "filter_name filter_type", "globalconfig": "globalconfig_name globalconfig_type",
			"secret": "secret_name secret_type secret_sni secret_cert", "keyset": "keyset_name", "key": "key_name key_description key_expires",
			"consumer": "consumer_name consumer_groups consumer_credentials", "list": "list_name list_type list_config",
		}))
	})

	It("say what they attach to", func() {
		to := map[string]string{}
		for _, k := range client.Kinds() {
			if k.AttachTo != nil {
				to[k.Name] = strings.Join(k.AttachTo, " ")
			}
		}
		Expect(to).To(Equal(map[string]string{
			"upstream": "route", "service": "proxy", "filter": "route service proxy", "globalconfig": "proxy", "secret": "service",
		}))
	})
})

var _ = Describe("Every field of every kind", func() {
	for _, kind := range model.Kinds() {
		for _, field := range form.Fields(kind) {
			if kind.Row().Attaches() != "" || field.Name == form.Fields(kind)[0].Name {
				continue
			}
			It(string(kind)+" "+field.Name+" is set by its own and by its short name", func() {
				value, want := "x1", any("x1")
				switch field.Get(model.New(kind)).(type) {
				case int:
					value, want = "1", 1
				case bool:
					value, want = "true", true
				case []string:
					value, want = "a,b", []string{"a", "b"}
				case json.RawMessage:
					value, want = "{}", json.RawMessage("{}")
				}
				short := strings.TrimPrefix(strings.ToLower(field.Name), string(kind)+"_")
				for _, word := range []string{field.Name, strings.ToUpper(field.Name), short} {
					var sent map[string]json.RawMessage
					Expect(json.Unmarshal([]byte(bodyOf(string(kind), "", word+"="+value)), &sent)).To(Succeed())
					Expect(sent).To(HaveLen(1))
					Expect(sent).To(HaveKey(field.Name))
					v, err := form.JSONValue(field.Name, sent[field.Name])
					Expect(err).NotTo(HaveOccurred())
					obj := model.New(kind)
					form.Bind(obj, []form.Value{v}, false)
					Expect(field.Get(obj)).To(Equal(want))
				}
				var sent map[string]json.RawMessage
				Expect(json.Unmarshal([]byte(bodyOf(string(kind), "", short+"=")), &sent)).To(Succeed())
				v, err := form.JSONValue(field.Name, sent[field.Name])
				Expect(err).NotTo(HaveOccurred())
				obj := model.New(kind)
				form.Bind(obj, []form.Value{v}, false)
				Expect(field.Get(obj)).To(Equal(field.Get(model.New(kind))), "cleared")
			})
		}
	}
})

var _ = Describe("Assignments", func() {
	DescribeTable("become the body of a call", func(want, kind, stored string, args ...string) {
		Expect(bodyOf(kind, stored, args...)).To(MatchJSON(want))
	},
		Entry("a number is sent as it is written", `{"Upstream_weight":"20"}`, "upstream", "", "weight=20"),
		Entry("a value may have an equals sign", `{"Upstream_hc_path":"/?a=b"}`, "upstream", "", "hc_path=/?a=b"),
		Entry("a file", `{"Secret_value":"content of a/b"}`, "secret", "", "value=@a/b"),
		Entry("a text that begins with @", `{"Secret_value":"@a"}`, "secret", "", "value=@@a"),
		Entry("standard input", `{"Secret_value":"content of -"}`, "secret", "", "value=-"),
		Entry("JSON keeps its numbers", `{"Filter_config":"{\"a\":12345678901234567890}"}`, "filter", "", `config={"a":12345678901234567890}`),
		Entry("YAML becomes JSON", `{"Filter_config":"{\"a\":[1,\"b\"]}"}`, "filter", "", `config={a: [1, b]}`),
		Entry("a new key inside", `{"Route_config":{"timeouts":{"request":"5s"}}}`, "route", "", "config.timeouts.request=5s"),
		Entry("a number inside", `{"Route_config":{"retries":{"attempts":2}}}`, "route", "", "config.retries.attempts=2"),
		Entry("a text that looks like a number", `{"Filter_config":{"a":"2"}}`, "filter", "", `config.a="2"`),
		Entry("a text of the model", `{"Filter_type":"route_filter_headers","Filter_config":{"request":{"set":{"x-a":"2","x-b":"true"}},"template":true}}`,
			"filter", "", "config.request.set.x-a=2", "type=route_filter_headers", "config.request.set.x-b=true", "config.template=true"),
		Entry("a text of the model, in a stored filter", `{"Filter_config":{"request":{"set":{"x-a":"2.50"}}}}`, "filter",
			`{"filter_type":"route_filter_headers","filter_config":{}}`, "config.request.set.x-a=2.50"),
		Entry("a number of the model", `{"Route_config":{"match":"5","retries":{"attempts":2}}}`, "route", "", "config.match=5", "config.retries.attempts=2"),
		Entry("a key inside a stored object", `{"Route_config":{"match":"exact","timeouts":{"idle":"1s","request":"5s"}}}`,
			"route", `{"route_config":{"match":"exact","timeouts":{"idle":"1s","request":"3s"}}}`, "config.timeouts.request=5s"),
		Entry("two keys", `{"Route_config":{"timeouts":{"idle":"1s","request":"5s"}}}`, "route", `{}`, "config.timeouts.request=5s", "config.timeouts.idle=1s"),
		Entry("a key that is removed", `{"Route_config":{"match":"exact"}}`,
			"route", `{"route_config":{"match":"exact","timeouts":{"request":"3s"}}}`, "config.timeouts.request="),
		Entry("the last key", `{"Route_config":{}}`, "route", `{"route_config":{"timeouts":{"request":"3s"}}}`, "config.timeouts.request="),
		Entry("an element of a list", `{"Filter_config":{"rules":[{"n":1},{"n":3}]}}`,
			"filter", `{"filter_config":{"rules":[{"n":1},{"n":2}]}}`, "config.rules.1.n=3"),
		Entry("an element that is removed", `{"Filter_config":{"rules":[1,3]}}`, "filter", `{"filter_config":{"rules":[1,2,3]}}`, "config.rules.1="),
		Entry("a key with a dot", `{"Filter_config":{"set":{"a.b":"c"}}}`, "filter", "", `config.set.a\.b=c`),
		Entry("a key in another letter case", `{"Filter_config":{"Set":{"a":"c"}}}`, "filter", `{"filter_config":{"Set":{"a":"b"}}}`, `config.set.A=c`),
		Entry("a field that is reset", `{"Upstream_weight":"100","Upstream_protocol":"http"}`, "upstream", "", "weight=", "protocol="),
	)

	DescribeTable("are refused", func(want, kind string, args ...string) {
		k, err := client.FindKind(kind)
		Expect(err).NotTo(HaveOccurred())
		_, err = k.ParseAssignments(args, func(string) (string, error) { return "", errors.New("cannot be read") })
		Expect(err).To(MatchError(want))
	},
		Entry(nil, `"wieght" is not a field of an upstream; did you mean weight?`, "upstream", "wieght=1"),
		Entry(nil, `"upstream_wieght" is not a field of an upstream; did you mean weight?`, "upstream", "upstream_wieght=1"),
		Entry(nil, `"zzzzzz" is not a field of a keyset; the fields are tags`, "keyset", "zzzzzz=1"),
		Entry(nil, "name is the name of the upstream: write it before the fields; it cannot be changed", "upstream", "name=x"),
		Entry(nil, `"tags" is not field=value; the fields of a keyset are tags`, "keyset", "tags"),
		Entry(nil, "Upstream_port is given twice", "upstream", "port=1", "Upstream_port=2"),
		Entry(nil, "config is given twice", "route", "config.match=exact", "config={}"),
		Entry(nil, "weight.x: weight has no keys inside", "upstream", "weight.x=1"),
		Entry(nil, "config.a..b: a key is empty", "route", "config.a..b=1"),
		Entry(nil, "config: cannot be read", "route", "config=@x"),
		Entry(nil, "config: is neither JSON nor YAML: did not find expected node content", "route", "config={]"),
	)

	DescribeTable("are refused for a stored object", func(want, stored, arg string) {
		k, err := client.FindKind("filter")
		Expect(err).NotTo(HaveOccurred())
		list, err := k.ParseAssignments([]string{arg}, nil)
		Expect(err).NotTo(HaveOccurred())
		_, err = k.Body(list, json.RawMessage(stored))
		Expect(err).To(MatchError(want))
	},
		Entry(nil, `filter_config.a.2: "2" is not an index of a list of 1`, `{"filter_config":{"a":[1]}}`, "config.a.2=1"),
		Entry(nil, `filter_config.a.b: "b" would be inside of 7, which is not an object`, `{"filter_config":{"a":7}}`, "config.a.b=1"),
	)
})
