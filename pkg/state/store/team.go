package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// TagShared is the tag with which the owner of an object lets every team use it.
const TagShared = "shared"

// The bounds of a Team.
const (
	maxTeamTags  = 8
	maxTeamHosts = 32
	maxTeamPorts = 64
	// maxTeamObjects bounds Team.MaxObjects.
	maxTeamObjects = 1_000_000
)

// Team is what the holder of a token with RoleEditor may change: objects with one of its tags, which are its own. The
// zero value may change nothing.
type Team struct {
	// Tags make an object the team's own. What is a part of an object, such as a route, belongs to whom that belongs.
	Tags []string
	// Hosts are patterns of the hosts that its services may have: a host name, "*.suffix" for every name below the
	// suffix and that wildcard itself, or "*" for every host. Empty: its services have no host.
	Hosts []string
	// Ports are those that its services of mode tcp, udp and tls may open. Empty: none.
	Ports []int
	// MaxObjects is how many objects may have its tags when it has created one, with their routes and keys; 0 means
	// any number.
	MaxObjects int
}

// Validate returns what is wrong, by the fields of POST /token.
func (t Team) Validate() (errs []model.FieldError) {
	add := func(field, format string, args ...any) {
		errs = append(errs, model.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case len(t.Tags) == 0:
		add("Token_tags", "is required for the role editor, which changes only what has one of these tags")
	case len(t.Tags) > maxTeamTags:
		add("Token_tags", "has %d words; at most %d are allowed", len(t.Tags), maxTeamTags)
	case slices.Contains(t.Tags, TagShared):
		add("Token_tags", "%q is the tag of what every team may use; choose another tag", TagShared)
	default:
		for _, e := range (&model.KeySet{Name: "x", Tags: t.Tags}).Validate() {
			if e.Field == "tags" {
				add("Token_tags", "%s", e.Message)
			}
		}
	}
	if len(t.Hosts) > maxTeamHosts {
		add("Token_hosts", "has %d patterns; at most %d are allowed", len(t.Hosts), maxTeamHosts)
	}
	for _, host := range t.Hosts[:min(len(t.Hosts), maxTeamHosts)] {
		for _, e := range (&model.Service{Name: "x", FQDN: host, HTTPS: model.HTTPSBoth, Mode: model.ModeHTTP}).Validate() {
			add("Token_hosts", "%s", e.Message)
		}
	}
	if len(t.Ports) > maxTeamPorts {
		add("Token_ports", "has %d ports; at most %d are allowed", len(t.Ports), maxTeamPorts)
	}
	for _, port := range t.Ports[:min(len(t.Ports), maxTeamPorts)] {
		if port < 1 || port > 65535 {
			add("Token_ports", "%d is not a port from 1 to 65535", port)
		}
	}
	if t.MaxObjects < 0 || t.MaxObjects > maxTeamObjects {
		add("Token_max_objects", "must be from 0 to %d; 0 means any number", maxTeamObjects)
	}
	return errs
}

// Owns reports whether an object is the team's.
func (t Team) Owns(obj model.Object) bool {
	tagged, ok := obj.(model.Tagged)
	return ok && slices.ContainsFunc(*tagged.TagList(), func(tag string) bool { return slices.Contains(t.Tags, tag) })
}

// mayUse reports whether an object is the team's, or everybody's.
func (t Team) mayUse(obj model.Object) bool {
	tagged, ok := obj.(model.Tagged)
	return ok && (t.Owns(obj) || tagged.TagList().Has(TagShared))
}

// mayHave reports whether the host, name or wildcard, lies within one of the team's patterns.
func (t Team) mayHave(host string) bool {
	host = strings.ToLower(host)
	return slices.ContainsFunc(t.Hosts, func(pattern string) bool {
		pattern = strings.ToLower(pattern)
		suffix, wild := strings.CutPrefix(pattern, "*")
		return pattern == "*" || host == pattern || wild && strings.HasSuffix(host, suffix)
	})
}

// IsTeamKind reports whether the objects of a kind may be a team's own. Those of others are the admins'.
func IsTeamKind(kind model.Kind) bool {
	switch kind {
	case model.KindService, model.KindUpstream, model.KindFilter, model.KindSecret, model.KindKeySet, model.KindConsumer, model.KindList:
		return true
	}
	return false
}

// CheckTeam refuses changes that a team may not make. The Forbidden error names every object that lacks a right, up to
// MaxReferences. r is the reader of the transaction that made the changes.
//
// What is not listed here is refused: a new kind of object is the admins' until it gets a rule.
func CheckTeam(r Reader, team Team, changes Changes) error {
	c := teamCheck{reader: r, team: team, deleted: map[model.Key]bool{}, told: map[string]bool{}}
	if err := c.prepare(changes); err != nil {
		return err
	}
	for w, err := range changes() {
		if err != nil {
			return err
		}
		if err := c.change(w); err != nil {
			return err
		}
	}
	if err := c.count(); err != nil {
		return err
	}
	return c.err()
}

type teamCheck struct {
	reader Reader
	team   Team
	// deleted has what the transaction has deleted, and whose entry in the change log is checked by itself.
	deleted map[model.Key]bool
	created bool
	refused []model.FieldError
	told    map[string]bool // paths and messages in refused
	more    int             // refusals beyond MaxReferences
}

// prepare reads together what the rules read one by one.
func (c *teamCheck) prepare(changes Changes) error {
	needed := map[model.Key]bool{}
	for w, err := range changes() {
		if err != nil {
			return err
		}
		c.deleted[w.Key] = w.After == nil
		c.created = c.created || w.Before == nil && w.Key.Attached() == (model.Key{})
		needed[w.Key.Root()] = true
		if w.Key.Attached() != (model.Key{}) {
			needed[w.Key.Attached()] = true
		}
	}
	keys := make([]model.Key, 0, len(needed))
	for key := range needed {
		keys = append(keys, key)
	}
	return c.reader.Prefetch(keys)
}

// change applies the rules to one object or link.
func (c *teamCheck) change(w Written) error {
	if IsTeamKind(w.Key.Kind) {
		return c.object(w)
	}
	c.exempt(w)
	switch w.Key.Kind {
	case model.KindRoute, model.KindAPIKey, model.KindRouteUpstream, model.KindRouteFilter, model.KindServiceFilter,
		model.KindServiceSecret:
		return firstOf(c.own(w.Key, w.Key.Root()), c.uses(w))
	case model.KindProxyService:
		return c.attachToProxy(w)
	}
	c.refuse(w.Key, "only an admin may change this: it affects others too")
	return nil
}

// exempt keeps routes that are exempt from filters of proxies as they are: one with other conditions would let more
// requests past these filters.
func (c *teamCheck) exempt(w Written) {
	r, ok := w.After.(*model.Route)
	if ok && r.Config.Exempt != nil && len(r.Config.Exempt.Proxy) > 0 {
		c.refuse(w.Key, "only an admin may write a route that is exempt from a filter of its proxy (exempt.proxy: %s)", r.Config.Exempt.Proxy[0])
	}
}

// object applies the rules to an object with a name of its own.
func (c *teamCheck) object(w Written) error {
	for _, state := range []model.Object{w.Before, w.After} {
		if state != nil && !c.team.Owns(state) {
			c.refuse(w.Key, "%s", c.foreign(w))
			break
		}
	}
	if svc, ok := w.After.(*model.Service); ok {
		c.host(w.Key, svc)
		before, ok := w.Before.(*model.Service)
		if !ok {
			before = model.NewService()
		}
		if svc.Public && !before.Public {
			c.refuse(w.Key, "only an admin may exempt a service from the login of its proxy (Public)")
		}
		for _, name := range svc.ExemptFilters {
			if !before.ExemptFilters.Has(name) {
				c.refuse(w.Key, "only an admin may exempt a service from a filter of its proxy (Exempt_filters: %s)", name)
			}
		}
	}
	if consumer, ok := w.After.(*model.Consumer); ok {
		if err := c.consumer(w.Key, consumer); err != nil {
			return err
		}
	}
	return c.uses(w)
}

// consumer requires that all that makes a consumer powerful is the team's: otherwise a team could put itself into a
// group that opens the services of another one, or take a credential from its owner.
func (c *teamCheck) consumer(subject model.Key, consumer *model.Consumer) error {
	for _, group := range consumer.Groups {
		if !slices.Contains(c.team.Tags, model.GroupTeam(group)) {
			c.refuse(subject, "group %s does not end in @ and a tag of the token, such as gold@%s", group, c.team.Tags[0])
		}
	}
	owners := map[model.Key]bool{}
	for _, key := range consumer.Credentials.Keys {
		set, _, _ := strings.Cut(key, "/")
		owners[model.KeySetKey(set)] = true
	}
	for _, user := range consumer.Credentials.Users {
		filter, _, _ := strings.Cut(user, "/")
		owners[model.FilterKey(filter)] = true
	}
	for _, owner := range slices.SortedFunc(maps.Keys(owners), func(a, b model.Key) int { return strings.Compare(a.Path(), b.Path()) }) {
		switch obj, err := c.reader.Get(owner); {
		case model.IsKind(err, model.NotFound):
			c.refuse(subject, "%s does not exist, and another team may create it", owner.Path())
		case err != nil:
			return err
		case !c.team.Owns(obj):
			c.refuse(subject, "%s does not have the tag of the token, and nor do its credentials", owner.Path())
		}
	}
	if len(consumer.Credentials.Tokens)+len(consumer.Credentials.Certificates) > 0 {
		c.refuse(subject, "only an admin may give a consumer a token or a certificate: their issuers are no team's")
	}
	return nil
}

// foreign says why an object is not the team's, before or after the change.
func (c *teamCheck) foreign(w Written) string {
	tags := "one of the tags " + strings.Join(c.team.Tags, ", ")
	if len(c.team.Tags) == 1 {
		tags = "the tag " + c.team.Tags[0]
	}
	switch {
	case w.Before == nil:
		return "needs " + tags
	case c.team.Owns(w.Before):
		return "must keep " + tags
	}
	return "does not have " + tags
}

// attachToProxy lets a team attach its services to proxies that it may use, and detach its services from any.
func (c *teamCheck) attachToProxy(w Written) error {
	service, proxy := w.Key.Attached(), w.Key.Owner()
	if err := c.own(w.Key, service); err != nil || w.After == nil {
		return err
	}
	svc, err := Get[*model.Service](c.reader, service)
	if err != nil {
		return err
	}
	c.host(w.Key, svc)
	return c.use(w.Key, proxy)
}

// own requires that the team owns an object.
func (c *teamCheck) own(subject, key model.Key) error {
	obj, err := c.reader.Get(key)
	switch {
	case model.IsKind(err, model.NotFound) && c.deleted[key]:
		return nil // its own entry is checked
	case err != nil:
		return err
	case !c.team.Owns(obj):
		c.refuse(subject, "%s does not have the tag of the token", key.Path())
	}
	return nil
}

// uses requires that the team may use everything that an object attaches or names.
func (c *teamCheck) uses(w Written) error {
	if w.After == nil {
		return nil
	}
	names, err := namesOf(w.After)
	if err != nil {
		return err
	}
	for _, key := range names {
		if err := c.use(w.Key, key); err != nil {
			return err
		}
	}
	return nil
}

// namesOf lists what an object attaches or names, also what may be missing, such as the logs of a filter.
func namesOf(obj model.Object) ([]model.Key, error) {
	keys := model.Uses(obj)
	f, ok := obj.(*model.Filter)
	if !ok {
		return keys, nil
	}
	_, err := f.MapNames(func(_, name string, kind model.Kind) string {
		if key := model.NewKey(kind, name); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
		return name
	})
	return keys, err
}

func (c *teamCheck) use(subject, key model.Key) error {
	obj, err := c.reader.Get(key)
	switch {
	case model.IsKind(err, model.NotFound) && c.deleted[key]:
		return nil // it is gone, and with it what used it
	case model.IsKind(err, model.NotFound):
		c.refuse(subject, "%s does not exist, and another team may create it", key.Path())
	case err != nil:
		return err
	case !c.team.mayUse(obj):
		c.refuse(subject, "%s is neither the team's own nor has the tag %s", key.Path(), TagShared)
	}
	return nil
}

// host requires that a service claims only hosts and ports that are the team's.
func (c *teamCheck) host(subject model.Key, svc *model.Service) {
	if svc.Port != 0 && !slices.Contains(c.team.Ports, svc.Port) {
		c.refuse(subject, "port %d is not one of the token's Token_ports", svc.Port)
	}
	if svc.Mode != model.ModeTCP && svc.Mode != model.ModeUDP && !c.team.mayHave(svc.FQDN) {
		c.refuse(subject, "host %q is not within the token's Token_hosts", svc.FQDN)
	}
}

// count refuses more objects than the team may have.
func (c *teamCheck) count() error {
	if c.team.MaxObjects == 0 || !c.created {
		return nil
	}
	own := map[model.Key]bool{}
	limit := c.team.MaxObjects + 1
	for _, kind := range model.Kinds() {
		for _, tag := range c.team.Tags {
			if kind.Row().Owner() != "" || len(own) >= limit {
				continue
			}
			list, err := c.reader.List(Query{Kind: kind, Tag: tag, Limit: limit})
			if err != nil {
				return err
			}
			for _, obj := range list {
				own[obj.Key()] = true
			}
		}
	}
	n := len(own)
	for key := range own {
		for _, kind := range key.Kind.OwnedKinds() {
			if kind.Row().Attaches() != "" || n >= limit {
				continue
			}
			parts, err := c.reader.List(Query{Kind: kind, To: []model.Key{key}, Limit: limit - n})
			if err != nil {
				return err
			}
			n += len(parts)
		}
	}
	if n >= limit {
		return &model.Error{
			Kind: model.Forbidden,
			Message: fmt.Sprintf("the team may have %d objects (Token_max_objects), and this would make more",
				c.team.MaxObjects),
			Hint: "delete some first, or ask an admin for a token with a higher number",
		}
	}
	return nil
}

func (c *teamCheck) refuse(key model.Key, format string, args ...any) {
	e := model.FieldError{Field: key.Path(), Message: fmt.Sprintf(format, args...)}
	switch text := e.Field + " " + e.Message; {
	case c.told[text]:
	case len(c.refused) == MaxReferences:
		c.more++
	default:
		c.told[text] = true
		c.refused = append(c.refused, e)
	}
}

func (c *teamCheck) err() error {
	if len(c.refused) == 0 {
		return nil
	}
	message := "the token lacks a right for what this call would change, and nothing was changed"
	if c.more > 0 {
		message += fmt.Sprintf("; the first %d refusals are shown, %d more follow", MaxReferences, c.more)
	}
	return &model.Error{
		Kind: model.Forbidden, Message: message, Fields: c.refused,
		Hint: "see errors; ask the owner to add the tag " + TagShared +
			" to what you use, or an admin to make the change",
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
