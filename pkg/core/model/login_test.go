package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const anyHost = "%REQ(x-forwarded-proto)%://%REQ(:authority)%"

var _ = DescribeTable("A redirect", func(text string, want model.Redirect) {
	Expect(model.ParseRedirect(text)).To(Equal(want))
},
	Entry("a URL", "https://shop.example.com/callback", model.Redirect{URI: "https://shop.example.com/callback", Path: "/callback", Host: "shop.example.com", Scheme: "https"}),
	Entry("with capitals", "HTTPS://Shop.Example.com:8443/Callback", model.Redirect{URI: "https://Shop.Example.com:8443/Callback", Path: "/Callback", Host: "shop.example.com", Scheme: "https"}),
	Entry("over http", "http://localhost/a/b/", model.Redirect{URI: "http://localhost/a/b/", Path: "/a/b/", Host: "localhost", Scheme: "http"}),
	Entry("at an IPv4 address", "https://192.0.2.1:1/cb", model.Redirect{URI: "https://192.0.2.1:1/cb", Path: "/cb", Host: "192.0.2.1", Scheme: "https"}),
	Entry("at an IPv6 address", "https://[2001:DB8::1]:65535/cb", model.Redirect{URI: "https://[2001:DB8::1]:65535/cb", Path: "/cb", Host: "2001:db8::1", Scheme: "https"}),
	Entry("a path", "/oauth2/callback", model.Redirect{URI: anyHost + "/oauth2/callback", Path: "/oauth2/callback"}),
	Entry("a template", anyHost+"/callback", model.Redirect{URI: anyHost + "/callback", Path: "/callback"}),
	Entry("a template in capitals", "%req(X-Forwarded-Proto)%://%REQ(:AUTHORITY)%/callback", model.Redirect{URI: anyHost + "/callback", Path: "/callback"}),
	Entry("a template of the host", "https://%REQ(:authority)%/callback", model.Redirect{URI: "https://%REQ(:authority)%/callback", Path: "/callback", Scheme: "https"}),
	Entry("a template of the scheme", "%REQ(x-forwarded-proto)%://a.example/cb", model.Redirect{URI: "%REQ(x-forwarded-proto)%://a.example/cb", Path: "/cb", Host: "a.example"}),
	Entry("every character that needs no escaping", "/-._~!$&'()*+=:@aZ09", model.Redirect{URI: anyHost + "/-._~!$&'()*+=:@aZ09", Path: "/-._~!$&'()*+=:@aZ09"}),
	Entry("dots that are not segments", "/.../..a/a../.well-known", model.Redirect{URI: anyHost + "/.../..a/a../.well-known", Path: "/.../..a/a../.well-known"}),
	Entry("the longest path", "/"+strings.Repeat("a", 254), model.Redirect{URI: anyHost + "/" + strings.Repeat("a", 254), Path: "/" + strings.Repeat("a", 254)}),
)

var _ = DescribeTable("A redirect is refused:", func(text, message string) {
	_, err := model.ParseRedirect(text)
	Expect(err).To(MatchError(ContainSubstring(message)))
},
	Entry("empty", "", "is not a URL such as https://shop.example.com/callback, a path such as /callback, or "+anyHost+"/callback"),
	Entry("a word", "callback", "is not a URL"),
	Entry("no path", "https://shop.example.com", "requires a path of its own"),
	Entry("the root", "https://shop.example.com/", "requires a path of its own"),
	Entry("only the root", "/", "requires a path of its own"),
	Entry("a template without a path", anyHost, "requires a path of its own"),
	Entry("a query", "https://shop.example.com/cb?x=1", "neither a query (?) nor a fragment (#)"),
	Entry("a fragment", "/cb#x", "neither a query (?) nor a fragment (#)"),
	Entry("another scheme", "javascript://shop.example.com/cb", "is neither an https nor an http URL"),
	Entry("a leading space", " https://a.example/cb", "is neither an https nor an http URL"),
	Entry("a user", "https://user@shop.example.com/cb", `has "user@shop.example.com" where a host is needed`),
	Entry("no host", "https:///cb", `has "" where a host is needed`),
	Entry("only a port", "https://:443/cb", "where a host is needed"),
	Entry("a colon without a port", "https://a.example:/cb", "where a host is needed"),
	Entry("port 0", "https://a.example:0/cb", "has the port 0, which is not between 1 and 65535"),
	Entry("port 65536", "https://a.example:65536/cb", "has the port 65536"),
	Entry("a port that is a word", "https://a.example:http/cb", "where a host is needed"),
	Entry("a wildcard", "https://*.example.com/cb", "where a host is needed"),
	Entry("a final dot", "https://a.example./cb", "where a host is needed"),
	Entry("a mistyped address", "https://192.0.2.300/cb", "where a host is needed"),
	Entry("an underscore in the host", "https://my_shop.example/cb", "has an underscore in the host my_shop.example, which Envoy does not accept in a URL"),
	Entry("an address in brackets", "https://[192.0.2.1]/cb", "where a host is needed"),
	Entry("an IPv6 address without brackets", "https://2001:db8::1/cb", "where a host is needed"),
	Entry("a zone", "https://[fe80::1%25eth0]/cb", "must have a host name or %REQ(:authority)% as the host"),
	Entry("a name in Unicode", "https://b\u00fccher.example/cb", "where a host is needed"),
	Entry("a percent sign in the host", "https://a%2eexample/cb", "must have a host name or %REQ(:authority)% as the host"),
	Entry("another header as the host", "https://%REQ(x-forwarded-host)%/cb", "must have a host name or"),
	Entry("an operator in the host", "https://%REQ(:authority)%.example.com/cb", "must have a host name or"),
	Entry("a port behind the host", anyHost+":8443/cb", "must have a host name or"),
	Entry("a space in an operator", "https://%REQ( :authority)%/cb", "must have a host name or"),
	Entry("a doubled percent sign", "%%REQ(x-forwarded-proto)%://%REQ(:authority)%/cb", "as the scheme"),
	Entry("another header as the scheme", "%REQ(:scheme)%://%REQ(:authority)%/cb", "must have https, http or %REQ(x-forwarded-proto)% as the scheme"),
	Entry("an unknown operator", "%FOO%://a.example/cb", "as the scheme"),
	Entry("an unterminated operator", "https://a.example/%REQ(x", `must not have "%" in its path`),
	Entry("an operator in the path", "/%REQ(:path)%", `must not have "%" in its path`),
	Entry("a percent sign at the end", "/cb%", `must not have "%" in its path`),
	Entry("an encoded slash", "/cb%2fx", `must not have "%" in its path`),
	Entry("two percent signs", "/cb%%20", `must not have "%" in its path`),
	Entry("a semicolon", "/cb;x", "has a character in its path that browsers or gateways change"),
	Entry("a comma", "/cb,x", "has a character in its path that browsers or gateways change"),
	Entry("a brace", "/cb{x}", "has a character in its path"),
	Entry("a quote", `/cb"x`, "has a character in its path"),
	Entry("a backslash", `/cb\x`, "has a character in its path"),
	Entry("a space", "/cb x", "has a character in its path"),
	Entry("a line feed", "/cb\n", "has a character in its path"),
	Entry("a NUL", "/cb\x00", "has a character in its path"),
	Entry("Unicode", "/r\u00fcckruf", "has a character in its path"),
	Entry("two slashes", "/a//b", "must not have //, /./ or /../ in its path"),
	Entry("two leading slashes", "//a.example/cb", "must not have //"),
	Entry("a dot", "/a/./b", "must not have //"),
	Entry("a dot at the end", "/a/.", "must not have //"),
	Entry("two dots", "/a/../b", "must not have //"),
	Entry("two dots at the end", "/a/..", "must not have //"),
	Entry("a path that is too long", "/"+strings.Repeat("a", 255), "has a path of 256 bytes; at most 255 are allowed"),
	Entry("too long as a whole", "https://"+strings.Repeat("a", 1100)+"/cb", "has 1111 bytes; at most 1024 are allowed"),
)

var _ = DescribeTable("A URL of a provider", func(text, message string) {
	err := model.CheckLoginURL(text)
	if message == "" {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(err).To(MatchError(ContainSubstring(message)))
},
	Entry(nil, "https://login.example.com", ""),
	Entry(nil, "http://127.0.0.1:8080/realms/a/token", ""),
	Entry(nil, "https://[::1]:8443/token", ""),
	Entry(nil, "https://login.example.com/auth?prompt=consent&x=%20y", ""),
	Entry(nil, "https://login.example.com?prompt=consent", ""),
	Entry(nil, "https://"+strings.Repeat("a.", 100)+"b/"+strings.Repeat("c", 1838), ""),
	Entry(nil, "https://"+strings.Repeat("a.", 100)+"b/"+strings.Repeat("c", 1839), "has 2049 bytes; at most 2048 are allowed"),
	Entry(nil, "", "is not a URL"),
	Entry(nil, "login.example.com/token", "is not a URL"),
	Entry(nil, "/token", "is not a URL"),
	Entry(nil, "HTTPS://login.example.com/", "is not a URL"),
	Entry(nil, "ftp://login.example.com/", "is not a URL"),
	Entry(nil, "https://", "where a host is needed"),
	Entry(nil, "https://my_login.example/token", "has an underscore in the host my_login.example, which Envoy does not accept in a URL"),
	Entry(nil, "https:///token", "where a host is needed"),
	Entry(nil, "https://a:b@login.example.com/token", "must not have a user before the host"),
	Entry(nil, "https://login.example.com:99999/token", "has the port 99999"),
	Entry(nil, "https://login.example.com\\@evil.example/token", "must not have a user"),
	Entry(nil, "https://login.example.com/token#x", "must not have a fragment"),
	Entry(nil, "https://login.example.com/to ken", "must be percent-encoded"),
	Entry(nil, "https://login.example.com/to\nken", "must be percent-encoded"),
	Entry(nil, "https://login.example.com/t\u00f6ken", "must be percent-encoded"),
	Entry(nil, "https://login.example.com/{tenant}/token", "must be percent-encoded"),
	Entry(nil, "https://login.example.com/%REQ(x)%", "has a percent sign without two hexadecimal digits after it"),
	Entry(nil, "https://login.example.com/100%", "has a percent sign"),
)

// loginFilter is a valid filter, with some keys changed. An empty value removes the key.
func loginFilter(changes ...string) *model.Filter {
	config := map[string]string{
		"client_id": `"shop"`, "client_secret": `"open sesame"`, "issuer": `"https://login.example.com"`, "redirect_uri": `"/callback"`, "cookie_secret": `"cookie"`,
	}
	for i := 0; i < len(changes); i += 2 {
		if config[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(config, changes[i])
		}
	}
	var list []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		list = append(list, fmt.Sprintf("%q:%s", key, config[key]))
	}
	return &model.Filter{Name: "login", Type: model.FilterOIDC, Config: model.JSON("{" + strings.Join(list, ",") + "}")}
}

// quotedList is the JSON of n texts of some length, each a different one.
func quotedList(n, length int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%q", fmt.Sprintf("%0*d", length, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// quotedMap is the JSON of an object with n keys, all of one value.
func quotedMap(n int, key, value string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"%s%d":%s`, key, i, value)
	}
	return "{" + strings.Join(list, ",") + "}"
}

var _ = DescribeTable("A login filter takes", func(changes ...string) {
	Expect(loginFilter(changes...).Validate()).To(BeEmpty())
},
	Entry("an issuer"),
	Entry("the fields of the specification", "name", `"login"`, "issuer", "", "authorization_endpoint", `"https://login.example.com/auth?prompt=consent"`,
		"token_endpoint", `"https://login.example.com/token"`, "redirect_uri", `"https://shop.example.com/callback"`, "logout_uri", `"/logout"`),
	Entry("the name of a secret", "client_secret", `{"secret":"client"}`),
	Entry("a long inline secret, which may be sealed", "client_secret", `"`+strings.Repeat("a", 4096)+`"`),
	Entry("a sealed text", "client_secret", `"sealed:v1:`+strings.Repeat("a", 6000)+`"`),
	Entry("every option", "jwks_uri", `"https://login.example.com/keys"`, "end_session_endpoint", `"https://login.example.com/end"`, "audiences", `["api","https://api.example.com"]`,
		"claim_headers", `{"x-user":"email","x-role":"realm_access.roles"}`, "require", `{"groups":["staff","B\u00fcro 1"]}`, "forward_tokens", "true", "access_token_cookie", "true",
		"token_endpoint_auth_method", `"client_secret_basic"`, "scopes", `["email","offline_access"]`, "upstream", `"idp"`),
	Entry("the maximum of everything", "scopes", quotedList(50, 255), "audiences", quotedList(20, 255), "claim_headers", quotedMap(20, "x-", `"c"`), "require", quotedMap(10, "c", quotedList(50, 60))),
)

var _ = DescribeTable("A login filter is refused with", func(field, message string, changes ...string) {
	Expect(loginFilter(changes...).Validate()).To(Equal([]model.FieldError{{Field: "Filter_config" + field, Message: message}}))
},
	Entry("an unknown key", "", `unknown field "colour"`, "colour", `"red"`),
	Entry("text instead of a list", ".scopes", "must be a list, not a string", "scopes", `"email"`),
	Entry("text instead of a list of values", ".require", "must be a list, not a string", "require", `{"groups":"staff"}`),
	Entry("a list instead of text", ".issuer", "must be a string, not an array", "issuer", `[]`),
	Entry("text instead of true", ".forward_tokens", "must be true or false, not a string", "forward_tokens", `"yes"`),
	Entry("a number instead of text", ".require", "must be a string, not a number", "require", `{"level":[1]}`),
	Entry("a list instead of an object", ".claim_headers", "must be an object, not an array", "claim_headers", `["email"]`),
	Entry("a key in another letter case, whose text would not be sealed", ".Client_Secret", "unknown field; write it client_secret", "client_secret", "", "Client_Secret", `"a"`),
	Entry("no client", ".client_id", "is required", "client_id", `""`),
	Entry("a client with a line feed", ".client_id", `"shop\n" begins or ends with a space, or has a character that is not printable ASCII`, "client_id", `"shop\n"`),
	Entry("a long client", ".client_id", "has 256 bytes; at most 255 are allowed", "client_id", `"`+strings.Repeat("a", 256)+`"`),
	Entry("no secret", ".client_secret", "is required", "client_secret", ""),
	Entry("a secret that is a number", "", `client_secret must be a string, or {"secret": NAME} with the name of a secret`, "client_secret", "12345"),
	Entry("a secret that is another object", "", `client_secret must be a string, or {"secret": NAME} with the name of a secret`, "client_secret", `{"name":"a"}`),
	Entry("an invalid secret name", ".client_secret.secret", "must be the name of a secret, of A-Z a-z 0-9 . _ -; create a secret with the text as its Secret_value, and give its name", "client_secret", `{"secret":"a/b"}`),
	Entry("a secret with the line feed of a file", ".client_secret", "begins or ends with a space, or has a control character, such as the line feed at the end of a file", "client_secret", `"a\n"`),
	Entry("a secret with a control character in it", ".client_secret", "begins or ends with a space, or has a control character, such as the line feed at the end of a file", "client_secret", `"a\tb"`),
	Entry("a secret that is too long", ".client_secret", "has 4097 bytes; at most 4096 are allowed", "client_secret", `"`+strings.Repeat("a", 4097)+`"`),
	Entry("the secret instead of its name, which is not repeated", ".cookie_secret", "must be the name of a secret, of A-Z a-z 0-9 . _ -; create a secret with the text as its Secret_value, and give its name", "cookie_secret", `"c2VjcmV0+/="`),
	Entry("no redirect", ".redirect_uri", "is required", "redirect_uri", ""),
	Entry("an invalid redirect", ".redirect_uri", `"/" requires a path of its own, such as /callback: the gateway answers requests for it`, "redirect_uri", `"/"`),
	Entry("a sign-out that is not a path", ".logout_uri", `"logout" must be a path, which starts with "/"`, "logout_uri", `"logout"`),
	Entry("a sign-out with a percent sign", ".logout_uri", `"/%6cogout" must not have "%" in its path; choose one of letters and digits, such as /callback`, "logout_uri", `"/%6cogout"`),
	Entry("a sign-out on the callback path", ".logout_uri", `"/callback" is the path that the identity provider sends users back to`, "logout_uri", `"/callback"`),
	Entry("an issuer with a query", ".issuer", `"https://login.example.com?a" must have no query: it is the provider's own name, and the address of its discovery document`, "issuer", `"https://login.example.com?a"`),
	Entry("no endpoint", ".token_endpoint", "is required, unless issuer is given", "issuer", "", "authorization_endpoint", `"https://login.example.com/auth"`),
	Entry("a relative endpoint", ".authorization_endpoint", `"/auth" is not a URL such as https://login.example.com/token`, "authorization_endpoint", `"/auth"`),
	Entry("an invalid end_session_endpoint", ".end_session_endpoint", `"/end" is not a URL such as https://login.example.com/token`, "end_session_endpoint", `"/end"`),
	Entry("an invalid jwks_uri", ".jwks_uri", `"keys" is not a URL such as https://login.example.com/token`, "jwks_uri", `"keys"`),
	Entry("a scope with a space", ".scopes[1]", `"openid email" is not a scope, such as openid or email`, "scopes", `["profile","openid email"]`),
	Entry("an empty scope", ".scopes[0]", `"" is not a scope, such as openid or email`, "scopes", `[""]`),
	Entry("a scope twice", ".scopes[2]", `"email" is named twice`, "scopes", `["email","profile","email"]`),
	Entry("a long scope", ".scopes[0]", "has 256 bytes; at most 255 are allowed", "scopes", quotedList(1, 256)),
	Entry("51 scopes", ".scopes", "has 51 elements; at most 50 are allowed", "scopes", quotedList(51, 3)),
	Entry("an empty audience", ".audiences[0]", `"" is not an audience, such as https://api.example.com`, "audiences", `[""]`),
	Entry("21 audiences", ".audiences", "has 21 elements; at most 20 are allowed", "audiences", quotedList(21, 3)),
	Entry("an invalid upstream", ".upstream", `"a b" may contain only the characters A-Z a-z 0-9 . _ -`, "upstream", `"a b"`),
	Entry("an unknown authentication method", ".token_endpoint_auth_method", `"private_key_jwt" is not one of client_secret_post, client_secret_basic`, "token_endpoint_auth_method", `"private_key_jwt"`),
	Entry("an invalid header", ".claim_headers.x user", `"x user" is not an HTTP token`, "claim_headers", `{"x user":"email"}`),
	Entry("a hop-by-hop header", ".claim_headers.Connection", `"Connection" belongs to the connection and cannot be changed`, "claim_headers", `{"Connection":"email"}`),
	Entry("a header that the gateway sets", ".claim_headers.x-forwarded-user", `"x-forwarded-user" is set by the gateway and cannot be changed`, "claim_headers", `{"x-forwarded-user":"email"}`),
	Entry("the header host", ".claim_headers.host", `"host" cannot be changed; the rewrite of Route_config changes path and host`, "claim_headers", `{"host":"email"}`),
	Entry("the header Cookie", ".claim_headers.Cookie", `"Cookie" carries the tokens of users and cannot be changed; choose another header`, "claim_headers", `{"Cookie":"email"}`),
	Entry("the header Authorization", ".claim_headers.authorization", `"authorization" carries the tokens of users and cannot be changed; choose another header`, "claim_headers", `{"authorization":"email"}`),
	Entry("a header twice", ".claim_headers.x-user", `"x-user" is named twice`, "claim_headers", `{"X-User":"email","x-user":"sub"}`),
	Entry("no claim", ".claim_headers.x-user", `"" is not the name of a claim, such as email or realm_access.roles`, "claim_headers", `{"x-user":""}`),
	Entry("an empty path segment of a claim", ".claim_headers.x-user", `"a..b" is not the name of a claim, such as email or realm_access.roles`, "claim_headers", `{"x-user":"a..b"}`),
	Entry("a claim that is a URL", ".require.https://shop.example/roles", `"https://shop.example/roles" cannot be used: dots separate the steps to a claim, so a name cannot contain one; have the provider issue the claim under a plain name too`,
		"require", `{"https://shop.example/roles":["a"]}`),
	Entry("21 headers", ".claim_headers", "has 21 headers; at most 20 are allowed", "claim_headers", quotedMap(21, "x-", `"c"`)),
	Entry("a claim without values", ".require.groups", "must list at least one value; a user needs one of them", "require", `{"groups":[]}`),
	Entry("an empty value", ".require.groups[0]", `"" is not a value of a claim`, "require", `{"groups":[""]}`),
	Entry("a value twice", ".require.groups[1]", `"a" is named twice`, "require", `{"groups":["a","a"]}`),
	Entry("51 values", ".require.groups", "has 51 elements; at most 50 are allowed", "require", `{"groups":`+quotedList(51, 3)+`}`),
	Entry("11 claims", ".require", "has 11 claims; at most 10 are allowed", "require", quotedMap(11, "c", `["a"]`)),
	Entry("claims of a token that is not verified", "", "claims can be used only if the id_token is verified: set issuer or jwks_uri", "issuer", "",
		"authorization_endpoint", `"https://l.example/a"`, "token_endpoint", `"https://l.example/t"`, "require", `{"groups":["a"]}`),
	Entry("a forwarded access token that is not kept", ".forward_tokens", "requires the access token: remove access_token_cookie", "forward_tokens", "true", "access_token_cookie", "false"),
	Entry("too large a configuration", "", "has 65537 bytes; at most 65536 are allowed", "name", `"`+strings.Repeat("a", 65388)+`"`),
)

const oauth = `{"openid_connect":{"provider":{"authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t"},"client_id":"c","client_secret":"cs","hmac_secret":"hs",` +
	`"client_secret_namespace":"gateway","hmac_secret_namespace":"gateway","scopes":["email"],"redirect_url":"%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback",` +
	`"redirect_path_matcher":"/callback","default_signout_path":"/signout"},"external_oauth_service":{"name":"l.example","namespace":"gateway","port":443,"protocol":"tls"}}`

var _ = DescribeTable("A login of proxies", func(was, is string, bad ...string) {
	Expect(oauth).To(ContainSubstring(was))
	g := &model.GlobalConfig{Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(strings.Replace(oauth, was, is, 1))}
	var want []model.FieldError
	for i := 0; i < len(bad); i += 2 {
		want = append(want, model.FieldError{Field: "config." + bad[i], Message: bad[i+1]})
	}
	Expect(g.Validate()).To(Equal(want))
},
	Entry("as in the specification", "", ""),
	Entry("with an issuer instead of endpoints", `"authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t"`, `"issuer":"https://l.example"`),
	Entry("without TLS to an https endpoint", `"tls"`, `"tcp"`, "external_oauth_service.protocol", `"tcp" does not fit openid_connect.provider.token_endpoint, which is https`),
	Entry("over TLS to an http endpoint", `"token_endpoint":"https:`, `"token_endpoint":"http:`,
		"external_oauth_service.protocol", `"tls" does not fit openid_connect.provider.token_endpoint, which is http`),
	Entry("with nothing", oauth, `{}`,
		"openid_connect.provider.authorization_endpoint", "is required, unless issuer is given", "openid_connect.provider.token_endpoint", "is required, unless issuer is given",
		"openid_connect.client_id", "is required", "openid_connect.client_secret", "is required", "openid_connect.hmac_secret", "is required",
		"openid_connect.redirect_url", "is required", "openid_connect.redirect_path_matcher", "is required"),
	Entry("with the secret instead of its name, which is not repeated", `"client_secret":"cs"`, `"client_secret":"s3cr3t!"`,
		"openid_connect.client_secret", "must be the name of a secret, of A-Z a-z 0-9 . _ -; create a secret with the text as its Secret_value, and give its name"),
	Entry("with a different path matcher", `"redirect_path_matcher":"/callback"`, `"redirect_path_matcher":"/back"`,
		"openid_connect.redirect_path_matcher", `"/back" must be the path of redirect_url, "/callback"`),
	Entry("with a bad template", `:authority)%/callback`, `:path)%/callback`,
		"openid_connect.redirect_url", `"%REQ(x-forwarded-proto)%://%REQ(:path)%/callback" must have a host name or %REQ(:authority)% as the host`),
	Entry("with a bad service", `"name":"l.example","namespace":"gateway","port":443,"protocol":"tls"`, `"name":"l.example:443","namespace":"a b","port":0,"protocol":"https"`,
		"external_oauth_service.name", `"l.example:443" is not an IPv4 address, an IPv6 address or a DNS name`,
		"external_oauth_service.namespace", `"a b" may contain only the characters A-Z a-z 0-9 . _ -`,
		"external_oauth_service.port", "0 is not between 1 and 65535", "external_oauth_service.protocol", `"https" is not one of tls, tcp`),
	Entry("with an upstream and a service", `"client_id":"c"`, `"client_id":"c","upstream":"idp"`,
		"external_oauth_service", "cannot be combined with openid_connect.upstream: both specify the address of the identity provider"),
	Entry("with a bad namespace", `"hmac_secret_namespace":"gateway"`, `"hmac_secret_namespace":"../x"`,
		"openid_connect.hmac_secret_namespace", `"../x" may contain only the characters A-Z a-z 0-9 . _ -`),
	Entry("with another bad namespace", `"client_secret_namespace":"gateway"`, `"client_secret_namespace":"a/b"`,
		"openid_connect.client_secret_namespace", `"a/b" may contain only the characters A-Z a-z 0-9 . _ -`),
	Entry("with a list instead of an object, and nothing more is said", `{"name":"l.example","namespace":"gateway","port":443,"protocol":"tls"}`, `[]`,
		"external_oauth_service", "must be an object, not an array"),
	Entry("with 51 scopes", `["email"]`, quotedList(51, 3), "openid_connect.scopes", "has 51 elements; at most 50 are allowed"),
	Entry("with 50 scopes", `["email"]`, quotedList(50, 3)),
	Entry("with a scope with a space", `["email"]`, `["openid email"]`, "openid_connect.scopes[0]", `"openid email" is not a scope, such as openid or email`),
	Entry("with the callback as the path to sign out", `"/signout"`, `"/callback"`,
		"openid_connect.default_signout_path", `"/callback" is the path that the identity provider sends users back to`),
	Entry("with an invalid jwks_uri", `"client_id":"c"`, `"client_id":"c","jwks_uri":"keys"`,
		"openid_connect.jwks_uri", `"keys" is not a URL such as https://login.example.com/token`),
	Entry("with claims of a token that is not verified", `"client_id":"c"`, `"client_id":"c","require":{"groups":["a"]}`,
		"openid_connect", "claims can be used only if the id_token is verified: set issuer or jwks_uri"),
	Entry("with an upstream whose name is reserved", `"client_id":"c","client_secret":"cs"`, `"client_id":"c","client_secret":"cs","upstream":"dump"`,
		"openid_connect.upstream", `"dump" is reserved for a call of the API`,
		"external_oauth_service", "cannot be combined with openid_connect.upstream: both specify the address of the identity provider"),
	Entry("without a protocol, which is tls", `,"protocol":"tls"`, ``),
	Entry("with a namespace that has the name of a call", `"namespace":"gateway","port"`, `"namespace":"dump","port"`),
)

var _ = Describe("What a login of proxies says", func() {
	It("fits its endpoint", func() {
		config := strings.NewReplacer(`"token_endpoint":"https:`, `"token_endpoint":"http:`, `,"protocol":"tls"`, "").Replace(oauth)
		Expect((&model.GlobalConfig{Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(config)}).Validate()).To(Equal([]model.FieldError{
			{Field: "config.external_oauth_service.protocol", Message: `"tls" does not fit openid_connect.provider.token_endpoint, which is http`},
		}))
	})

	parsed := func(config string) *model.OAuthConfig {
		GinkgoHelper()
		g := (&model.GlobalConfig{Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(config)}).Parse()
		Expect(g.Fault).NotTo(HaveOccurred())
		return g.Spec.(*model.OAuthConfig)
	}

	It("is what its provider says too, in a copy", func() {
		c := parsed(oauth)
		provider := &model.Provider{Source: c.Login().Source()}
		Expect(model.LoginOf(model.Learned(c, model.Providers{provider})).Provider).To(BeIdenticalTo(provider))
		Expect(c.Login().Provider).To(BeNil())
	})

	It("is all of its configuration", func() {
		c := parsed(strings.Replace(oauth, `"client_id":"c"`, `"client_id":"c","jwks_uri":"https://l.example/keys"`, 1))
		Expect(c.Login()).To(Equal(&model.Login{
			ClientID: "c", ClientSecret: model.ClientSecret{Secret: "cs"}, CookieSecret: "hs",
			AuthorizationEndpoint: "https://l.example/a", TokenEndpoint: "https://l.example/t",
			Redirect:    model.Redirect{URI: anyHost + "/callback", Path: "/callback"},
			SignOutPath: "/signout", Scopes: []string{"email"}, Address: &model.ProviderAddress{Host: "l.example", Port: 443, TLS: true},
			LoginOptions: model.LoginOptions{JWKSURI: "https://l.example/keys"},
		}))
	})

	It("is where its provider is", func() {
		const service = `,"external_oauth_service":{"name":"l.example","namespace":"gateway","port":443,"protocol":"tls"}`
		c := parsed(strings.Replace(strings.Replace(oauth, service, "", 1), `"client_id":"c"`, `"client_id":"c","upstream":"idp"`, 1))
		Expect(c.Login()).To(And(HaveField("Upstream", "idp"), HaveField("Address", BeNil())))
		c = parsed(strings.NewReplacer(`"token_endpoint":"https:`, `"token_endpoint":"http:`, `"port":443,"protocol":"tls"`, `"port":80,"protocol":"tcp"`).Replace(oauth))
		Expect(c.Login().Address).To(Equal(&model.ProviderAddress{Host: "l.example", Port: 80}))
		c = parsed(strings.Replace(oauth, `,"protocol":"tls"`, "", 1))
		Expect(c.Login().Address.TLS).To(BeTrue())
		c = parsed(strings.Replace(oauth, `"authorization_endpoint":"https://l.example/a","token_endpoint":"https://l.example/t"`, `"issuer":"https://l.example"`, 1))
		Expect(c.Login().Issuer).To(Equal("https://l.example"))
	})
})
