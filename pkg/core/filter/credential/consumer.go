package credential

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// ConsumerFilter is the name of the filter that finds the consumer of a request. It is delivered on its own (ECDS), so
	// that neither listeners nor routes change when consumers do.
	ConsumerFilter = seam.Consumer
	// consumerAccessFilter is the name of the filter that checks the consumer that was found.
	consumerAccessFilter                           = "envoy.filters.http.rbac/consumer"
	consumerKey          seam.Key[*ConsumerAccess] = "consumer"
)

// consumerUnknown and consumerRefused are the policies that refuse requests: of nobody that is known, or of several
// consumers at once; and of a consumer that is not allowed.
const (
	consumerUnknown = "consumer_unknown"
	consumerRefused = "consumer_refused"
)

// AllConsumers is the only part of the list of consumers.
const AllConsumers = "all"

// ConsumerAccess is which consumers a route lets pass.
type ConsumerAccess struct {
	// Optional lets requests without a consumer pass.
	Optional bool     `json:"optional,omitempty"`
	Allow    []string `json:"allow,omitempty"`
	Deny     []string `json:"deny,omitempty"`
	// NameHeader and GroupsHeader tell the upstream who it is.
	NameHeader   string `json:"nameHeader"`
	GroupsHeader string `json:"groupsHeader"`
}

// addConsumer adds the filter to a route. On a public route nobody need be known.
func addConsumer(r *ir.Route, f *model.ConsumerFilter, _ seam.Place) error {
	r.Filters = consumerKey.In(r.Filters, &ConsumerAccess{
		Optional: !f.IsRequired() || r.Public, Allow: f.Allow, Deny: f.Deny,
		NameHeader: f.NameHeader, GroupsHeader: f.GroupsHeader,
	})
	return nil
}

// consumerConfig are the hooks. Each route has the filter of its service itself, since a public route changes it, and
// since redirects to HTTPS need none.
func consumerConfig() *seam.Config {
	c := seam.LastOf(addConsumer, nil)
	c.Needs = func(h *ir.Host) ir.Needs {
		for _, route := range h.Routes {
			for _, r := range route.All() {
				if consumerKey.Of(r.Filters) != nil {
					return ir.Needs{Consumers: true}
				}
			}
		}
		return ir.Needs{}
	}
	return c
}

// Consumers returns consumers as Envoy looks them up. A credential of two consumers, which only a database has that was
// edited by hand, or a rollback, is no one's.
func Consumers(list []*model.Consumer) []ir.Consumer {
	holders := map[string]int{}
	for _, c := range list {
		for _, id := range c.Credentials.IDs() {
			holders[id]++
		}
	}
	out := make([]ir.Consumer, 0, len(list))
	for _, c := range list {
		if len(c.Validate()) > 0 {
			continue
		}
		ids := slices.DeleteFunc(c.Credentials.IDs(), func(id string) bool { return holders[id] > 1 })
		out = append(out, ir.Consumer{Name: c.Name, Groups: c.Groups, Credentials: ids})
	}
	return out
}

// noConsumers finds nobody, and does not say that nobody is known: consumerAccessFilter then refuses every request.
func noConsumers(ir.Listener) []seam.Message {
	script := &luav3.Lua{DefaultSourceCode: seam.Inline("function envoy_on_request() end")}
	return []seam.Message{{Name: ConsumerFilter, Config: script, Discovered: &luav3.Lua{}}}
}

// consumerResources returns the consumers once for all listeners of a proxy.
func consumerResources(l ir.Listener) (seam.Resources, error) {
	if l.TLS != nil {
		return seam.Resources{}, nil
	}
	list, err := ConsumerList(l.Consumers)
	return seam.Resources{Extensions: []*corev3.TypedExtensionConfig{list}}, err
}

// ConsumerList returns the consumers for ConsumerFilter.
func ConsumerList(consumers []ir.Consumer) (*corev3.TypedExtensionConfig, error) {
	packed, err := seam.Pack(consumerScript(consumers))
	return &corev3.TypedExtensionConfig{Name: ConsumerFilter, TypedConfig: packed}, err
}

//go:embed consumer.lua
var consumerLua string

// blockSize is how many credentials the script reads together.
const blockSize = 32

// consumerScript returns the script with its tables: blocks of credentials with their consumers, and the first
// credential of each block; the claims that are compared, by issuer; whether there are users and certificates. A name
// has no character that ends a field, and luaText no character that ends a text.
func consumerScript(consumers []ir.Consumer) *luav3.Lua {
	type entry struct{ id, line string }
	var entries []entry
	claims, kinds := map[string]map[string]bool{}, map[string]bool{}
	for _, c := range consumers {
		line := "\x01" + c.Name + "\x01" + strings.Join(c.Groups, ",") + "\n"
		for _, id := range c.Credentials {
			entries = append(entries, entry{id, id + line})
			parts := strings.Split(id, "\x02")
			if kinds[parts[0]] = true; parts[0] == "token" {
				if claims[parts[1]] == nil {
					claims[parts[1]] = map[string]bool{}
				}
				claims[parts[1]][parts[2]] = true
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.id, b.id) })
	var first, blocks, script strings.Builder
	for block := range slices.Chunk(entries, blockSize) {
		luaText(&first, block[0].id)
		first.WriteString(",")
		blocks.WriteString(`"`)
		for _, e := range block {
			luaEscape(&blocks, e.line)
		}
		blocks.WriteString("\",\n")
	}
	fmt.Fprintf(&script, "local first = {%s}\nlocal blocks = {\n%s}\nlocal claims = {", first.String(), blocks.String())
	for _, issuer := range slices.Sorted(maps.Keys(claims)) {
		script.WriteString("[")
		luaText(&script, issuer)
		script.WriteString("]={")
		for _, claim := range slices.Sorted(maps.Keys(claims[issuer])) {
			script.WriteString("{name=")
			luaText(&script, claim)
			for step := range strings.SplitSeq(claim, ".") {
				script.WriteString(",")
				luaText(&script, step)
			}
			script.WriteString("},")
		}
		script.WriteString("},")
	}
	fmt.Fprintf(&script, "}\nlocal users, certificates = %t, %t\n%s", kinds["user"],
		kinds["subject"] || kinds["uri"] || kinds["dns"], consumerLua)
	return &luav3.Lua{DefaultSourceCode: seam.Inline(script.String())}
}

// luaText writes a text of Lua.
func luaText(b *strings.Builder, s string) {
	b.WriteString(`"`)
	luaEscape(b, s)
	b.WriteString(`"`)
}

// luaEscape writes what is between the quotes of a text.
func luaEscape(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(b, `\%03d`, c)
		} else {
			b.WriteByte(c)
		}
	}
}

// lookUpConsumer turns the filter on with the listener's configuration.
func lookUpConsumer(d demands) []seam.Message {
	if d.consumer == nil {
		return nil
	}
	return []seam.Message{{Name: ConsumerFilter, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
}

// consumers refuses requests of consumers that are not allowed, and of nobody that is known. It compares what the script
// has written: if that fails, nothing, and the request is refused.
func consumers(d demands) []seam.Message {
	c := d.consumer
	if c == nil {
		return nil
	}
	known := consumerFact(seam.ConsumerName, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_PresentMatch{PresentMatch: true}})
	accepted := []*rbacconfigv3.Principal{known}
	if c.Optional {
		accepted = append(accepted, consumerFact("none", text(&matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "unknown"},
		})))
	}
	rules := seam.RefuseAll(consumerUnknown)
	rules.GetPolicies()[consumerUnknown].Principals = []*rbacconfigv3.Principal{notID(orIDs(accepted))}
	var wrong []*rbacconfigv3.Principal
	if len(c.Allow) > 0 {
		wrong = append(wrong, notID(inGroups(c.Allow)))
	}
	if len(c.Deny) > 0 {
		wrong = append(wrong, inGroups(c.Deny))
	}
	if len(wrong) > 0 {
		rules.Policies[consumerRefused] = &rbacconfigv3.Policy{
			Permissions: rules.GetPolicies()[consumerUnknown].GetPermissions(),
			Principals:  []*rbacconfigv3.Principal{andIDs([]*rbacconfigv3.Principal{known, orIDs(wrong)})},
		}
	}
	return []seam.Message{{Name: consumerAccessFilter, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}}
}

// consumerFact matches what the script has written.
func consumerFact(name string, value *matcherv3.ValueMatcher) *rbacconfigv3.Principal {
	return metadataPrincipal(seam.Consumer, []string{name}, value)
}

// isConsumer matches one of some consumers.
func isConsumer(names []string) *rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, name := range names {
		list = append(list, consumerFact(seam.ConsumerName, text(&matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name},
		})))
	}
	return orIDs(list)
}

// inGroups matches a consumer in one of the groups.
func inGroups(groups []string) *rbacconfigv3.Principal {
	return consumerFact(seam.ConsumerGroups, text(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{
		SafeRegex: &matcherv3.RegexMatcher{Regex: groupExpression(groups)},
	}}))
}

// groupExpression matches the groups of a consumer, with commas between them, if one of some groups is among them.
func groupExpression(groups []string) string {
	quoted := make([]string, len(groups))
	for i, g := range groups {
		quoted[i] = regexp.QuoteMeta(g)
	}
	return "(?:.*,)?(?:" + strings.Join(quoted, "|") + ")(?:,.*)?"
}

// tellConsumer tells the upstream who the consumer is. Envoy sets no header without a value.
func tellConsumer(c *ConsumerAccess) []*mutationv3.HeaderMutation {
	if c == nil {
		return nil
	}
	return []*mutationv3.HeaderMutation{
		set(c.NameHeader, consumerCommand(seam.ConsumerName)),
		set(c.GroupsHeader, consumerCommand(seam.ConsumerGroups)),
	}
}

// consumerCommand is the format of what the script has written.
func consumerCommand(name string) string {
	return "%DYNAMIC_METADATA(" + seam.Consumer + ":" + name + ")%"
}

// sayForScript puts what the script reads into the metadata of a host or route: which filter has the users, and that
// clients show certificates.
func sayForScript(before *corev3.Metadata, users *BasicAuth, certificates bool) *corev3.Metadata {
	fields := map[string]*structpb.Value{}
	if users != nil {
		fields["users"] = structpb.NewStringValue(users.Filter)
	}
	if certificates {
		fields["certificates"] = structpb.NewBoolValue(true)
	}
	if len(fields) == 0 {
		return before
	}
	out := &corev3.Metadata{FilterMetadata: maps.Clone(before.GetFilterMetadata())}
	if out.FilterMetadata == nil {
		out.FilterMetadata = map[string]*structpb.Struct{}
	}
	out.FilterMetadata[ConsumerFilter] = &structpb.Struct{Fields: fields}
	return out
}

// saidForScript returns what sayForScript has put: the route's, or else the host's.
func saidForScript(r seam.Request, name string) *structpb.Value {
	for _, m := range []*corev3.Metadata{r.Route.GetMetadata(), r.VirtualHost.GetMetadata()} {
		if v := m.GetFilterMetadata()[ConsumerFilter].GetFields()[name]; v != nil {
			return v
		}
	}
	return nil
}
