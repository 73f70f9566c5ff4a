package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// ConsoleOIDC says how users of an identity provider sign in to the console. Without an Issuer they do not.
type ConsoleOIDC struct {
	// Issuer is the provider's name for itself, ClientID the name that it has given to this program.
	Issuer, ClientID string
	// ClientSecretFile is the file that ClientSecret was read from; empty if it was set otherwise.
	ClientSecretFile string
	// ClientSecret proves to the provider who this program is.
	ClientSecret string
	// RedirectURL is the page to which the provider sends browsers back; empty means the page that they come from.
	RedirectURL string
	// Scopes are requested in addition to openid.
	Scopes []string
	// GroupsClaim is the claim with the groups of a user.
	GroupsClaim string
	// Groups say what users may do: those of the first group that somebody is in.
	Groups []GroupRights
	// Name is what the console calls the provider.
	Name string
	// Session is how long somebody is signed in.
	Session time.Duration
}

// GroupRights are what the users of a group may do.
type GroupRights struct {
	Group string
	// Role is admin, editor or viewer. An editor has the team of the token with the name Token.
	Role, Token string
}

// clientSecretVariable holds the secret itself, as adminTokenVariable does.
const clientSecretVariable = "GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET"

// consoleSettings set who else may use the console.
func consoleSettings() []Setting {
	servers := []string{Serve, Standalone}
	return []Setting{
		{
			Name: "console-oidc-issuer", Type: "url", commands: servers,
			Usage:   "issuer of the OpenID provider whose users may sign in to the console (default: none, only tokens)",
			allowed: "a URL of https without a query such as https://id.example.com/realms/staff; http only for this machine",
			set:     setter(func(c *Config) *string { return &c.Console.Issuer }, issuer),
		},
		{
			Name: "console-oidc-client-id", Type: "name", commands: servers,
			Usage:   "name of this program at that provider",
			allowed: "1 to 255 visible ASCII characters",
			set: setter(func(c *Config) *string { return &c.Console.ClientID }, func(s string) (string, error) {
				return matching(s, `^[!-~]{0,255}$`)
			}),
		},
		{
			Name: "console-oidc-client-secret-file", Type: "file", commands: servers,
			Usage:   "file with the secret of that client (or the secret itself in " + clientSecretVariable + ")",
			allowed: "a path",
			set:     setter(func(c *Config) *string { return &c.Console.ClientSecretFile }, anyText),
		},
		{
			Name: "console-oidc-redirect-url", Type: "url", commands: servers,
			Usage: "address of the console, to which the provider sends browsers back " +
				"(default: the one where somebody signs in; it has to be registered at the provider)",
			allowed: "a URL that ends with /ui/, such as https://gateway.example.com/ui/",
			set:     setter(func(c *Config) *string { return &c.Console.RedirectURL }, consoleURL),
		},
		{
			Name: "console-oidc-scopes", Type: "names", Default: "profile", commands: servers,
			Usage:   "scopes to request in addition to openid, separated by commas; some providers have one for groups",
			allowed: "a list of scopes such as profile,groups",
			set:     setter(func(c *Config) *[]string { return &c.Console.Scopes }, scopes),
		},
		{
			Name: "console-oidc-groups-claim", Type: "name", Default: "groups", commands: servers,
			Usage:   "claim of the id_token with the groups of a user",
			allowed: "the name of a claim, 1 to 255 visible ASCII characters",
			set: setter(func(c *Config) *string { return &c.Console.GroupsClaim }, func(s string) (string, error) {
				return matching(s, `^[!-~]{1,255}$`)
			}),
		},
		{
			Name: "console-oidc-groups", Type: "group=rights", commands: servers, List: true,
			Usage: "what the users of groups may do, separated by commas or given again: admin, viewer, or " +
				"editor:TOKEN for what the token with that name may change; the first group that somebody is in counts",
			allowed: "a list such as platform=admin,shop=editor:shop-ci,staff=viewer; groups have no comma and no equals sign",
			set:     setter(func(c *Config) *[]GroupRights { return &c.Console.Groups }, groupRights),
		},
		{
			Name: "console-oidc-name", Type: "name", commands: servers,
			Usage:   "what the console calls the provider (default: the host of the issuer)",
			allowed: "a text of at most 64 characters",
			set:     setter(func(c *Config) *string { return &c.Console.Name }, label),
		},
		{
			Name: "console-oidc-session", Type: "duration", Default: "8h", commands: servers,
			Usage: "how long somebody is signed in; whoever leaves a group at the provider keeps the rights " +
				"until the session ends",
			allowed: "a duration from 5m to 24h such as 8h",
			set: setter(func(c *Config) *time.Duration { return &c.Console.Session },
				durationWithin(5*time.Minute, 24*time.Hour)),
		},
	}
}

// completeConsole reads the client's secret, and checks that what belongs together is there.
func (c *Config) completeConsole(env map[string]string, readFile ReadFile) error {
	o := &c.Console
	if o.Issuer == "" {
		for _, s := range consoleSettings() {
			if c.Explicit[s.Name] && s.Name != "console-oidc-issuer" {
				return fmt.Errorf("--%s requires --console-oidc-issuer, the identity provider", s.Name)
			}
		}
		return nil
	}
	for name, missing := range map[string]bool{"console-oidc-client-id": o.ClientID == "", "console-oidc-groups": len(o.Groups) == 0} {
		if missing {
			return fmt.Errorf("--console-oidc-issuer requires --%s", name)
		}
	}
	for _, g := range o.Groups {
		if g.Token != "" && c.Mode == ModeKubernetes {
			return fmt.Errorf("--console-oidc-groups: with --mode kubernetes the API only reads, so %q cannot be an editor; "+
				"use viewer", g.Group)
		}
	}
	if u, err := url.Parse(o.Issuer); err == nil && o.Name == "" {
		o.Name = u.Host
	}
	secret, from := env[clientSecretVariable], "environment "+clientSecretVariable
	if o.ClientSecretFile != "" {
		if secret != "" {
			return fmt.Errorf("--console-oidc-client-secret-file and environment %s are both given: give one", clientSecretVariable)
		}
		data, err := readFile(o.ClientSecretFile)
		if err != nil {
			return fmt.Errorf("--console-oidc-client-secret-file: reading %s: %w", o.ClientSecretFile, pathCause(err))
		}
		secret, from = strings.TrimSpace(string(data)), "--console-oidc-client-secret-file: "+o.ClientSecretFile
	}
	if secret == "" {
		return fmt.Errorf("--console-oidc-issuer requires --console-oidc-client-secret-file or environment %s", clientSecretVariable)
	}
	if len(secret) > 1024 || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%s: the secret may have at most 1024 characters, all of them visible ASCII", from)
	}
	o.ClientSecret = secret
	return nil
}

// issuer accepts the name of a provider, or nothing.
func issuer(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	u, err := httpURL(s, "")
	if err != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") || len(s) > 2048 {
		return "", errNotAllowed
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if local := u.Hostname() == "localhost" || err == nil && addr.IsLoopback(); u.Scheme != "https" && !local {
		return "", errNotAllowed
	}
	return s, nil
}

// consoleURL accepts the address of the console, or nothing.
func consoleURL(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	u, err := httpURL(s, "")
	if err != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(s, "#") || !strings.HasSuffix(u.EscapedPath(), "/ui/") {
		return "", errNotAllowed
	}
	return s, nil
}

// scopes reads a comma-separated list (RFC 6749 section 3.3); empty means none.
func scopes(s string) (list []string, err error) {
	for one := range strings.SplitSeq(s, ",") {
		one = strings.TrimSpace(one)
		if one == "" && s == "" || one == "openid" {
			continue
		}
		if _, err := matching(one, `^[!#-+\--\[\]-~]{1,255}$`); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// groupRights reads a comma-separated list without duplicates. A group with an equals sign would be ambiguous.
func groupRights(s string) (list []GroupRights, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		group, rights, _ := strings.Cut(one, "=")
		group = strings.TrimSpace(group)
		role, token, named := strings.Cut(strings.TrimSpace(rights), ":")
		known := slices.ContainsFunc(list, func(g GroupRights) bool { return g.Group == group })
		if _, err := matching(token, `^[A-Za-z0-9._-]{1,253}$`); named && err != nil || known || group == "" || len(group) > 255 ||
			strings.ContainsFunc(group, unicode.IsControl) || !slices.Contains([]string{"admin", "viewer", "editor"}, role) ||
			named != (role == "editor") || len(list) == 1000 {
			return nil, errNotAllowed
		}
		list = append(list, GroupRights{Group: group, Role: role, Token: token})
	}
	return list, nil
}

// label accepts a short text for people, or nothing.
func label(s string) (string, error) {
	if len([]rune(s)) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", errNotAllowed
	}
	return s, nil
}
