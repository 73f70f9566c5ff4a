package model

import (
	"cmp"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Consumer is a person or program that calls services, with the credentials by which it is known. It is found once for
// each request, by the credential that a filter has verified.
// +example={consumer_name: acme, consumer_groups: [gold], consumer_credentials: {keys: [partners/mobile]}}
type Consumer struct {
	ID   int64  `json:"consumer_id"`
	Name string `json:"consumer_name" form:"Consumer_name,required"`
	// Groups are words by which filters allow, deny and limit consumers.
	Groups Groups `json:"consumer_groups" form:"Consumer_groups"`
	// Each credential belongs to one consumer only. A JSON object, or a string that contains one.
	Credentials ConsumerCredentials `json:"consumer_credentials" form:"Consumer_credentials"`
	Tags        Tags                `json:"tags" form:"tags"`
	CreateTS    Time                `json:"create_ts"`
	UpdateTS    Time                `json:"update_ts"`
}

// Groups are the names of groups of consumers, sorted, each once.
type Groups = Tags

// ConsumerCredentials are the credentials of a consumer. What they name need not exist: a consumer stays when its key is
// revoked.
type ConsumerCredentials struct {
	// Keys are API keys, as SET/KEY.
	Keys []string `json:"keys,omitempty"`
	// Users are users with a password, as FILTER/USER.
	Users []string `json:"users,omitempty"`
	// Tokens are claims of the tokens and logins of an issuer.
	Tokens []TokenCredential `json:"tokens,omitempty"`
	// Certificates are those that clients show to a service with Client_validation_cacertificate.
	Certificates []CertificateCredential `json:"certificates,omitempty"`
	// Unreadable is a stored text that cannot be read, which only a database that was edited by hand has. The consumer then
	// has no credentials. Empty means none.
	Unreadable string `json:"-"`
}

// TokenCredential is a claim with a value in the tokens of an issuer.
type TokenCredential struct {
	Issuer string `json:"issuer"`
	// Subject is the value of the claim sub. In its place may be any Claim, with dots between the steps to it, and its Value.
	Subject string `json:"subject,omitempty"`
	Claim   string `json:"claim,omitempty"`
	Value   string `json:"value,omitempty"`
}

// CertificateCredential is what names the holder of a certificate: exactly one of its fields.
type CertificateCredential struct {
	// Subject is the whole subject in the form of RFC 2253, such as CN=ann,O=Acme.
	Subject string `json:"subject,omitempty"`
	// URI and DNS are subject alternative names.
	URI string `json:"uri,omitempty"`
	DNS string `json:"dns,omitempty"`
}

// The bounds of a consumer. An Envoy gets all consumers.
const (
	maxGroups      = 16
	maxCredentials = 50
	maxCredential  = 500
)

// KindCredential is the kind of what consumers claim. It is no kind of objects: see Claims.
const KindCredential Kind = "credential"

// credentialSeparator stands between the parts of the identity of a credential. No part has a control character.
const credentialSeparator = "\x02"

// Key implements Object.
func (c *Consumer) Key() Key { return ConsumerKey(c.Name) }

// Meta implements Object.
func (c *Consumer) Meta() Meta { return Meta{&c.ID, &c.CreateTS, &c.UpdateTS} }

// TagList implements Tagged.
func (c *Consumer) TagList() *Tags { return &c.Tags }

// Claims implements Claimer.
func (c *Consumer) Claims() []Key {
	var keys []Key
	for _, id := range c.Credentials.IDs() {
		keys = append(keys, Key{KindCredential, id})
	}
	return keys
}

// IDs are the identities of the credentials, sorted and each once: what an Envoy looks up.
func (c ConsumerCredentials) IDs() []string {
	var ids []string
	add := func(parts ...string) { ids = append(ids, CredentialID(parts...)) }
	for _, k := range c.Keys {
		add("key", k)
	}
	for _, u := range c.Users {
		add("user", u)
	}
	for _, t := range c.Tokens {
		claim, value := t.Is()
		add("token", t.Issuer, claim, value)
	}
	for _, cert := range c.Certificates {
		form, value := cert.Is()
		add(form, value)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// CredentialID is the identity of a credential: its kind, and what distinguishes it from others of that kind.
func CredentialID(parts ...string) string { return strings.Join(parts, credentialSeparator) }

// CredentialText is the identity of a credential, as messages show it.
func CredentialText(id string) string { return strings.ReplaceAll(id, credentialSeparator, " ") }

// Is returns the claim and its value.
func (t TokenCredential) Is() (claim, value string) {
	if t.Claim == "" {
		return "sub", t.Subject
	}
	return t.Claim, t.Value
}

// Is returns which name of the certificate it is, and the name.
func (c CertificateCredential) Is() (form, name string) {
	switch {
	case c.Subject != "":
		return "subject", c.Subject
	case c.URI != "":
		return "uri", c.URI
	}
	return "dns", c.DNS
}

// Validate implements Object.
func (c *Consumer) Validate() []FieldError {
	var v validator
	v.name("Consumer_name", c.Name, false)
	v.groups("Consumer_groups", c.Groups)
	c.Credentials.validate(&v, "Consumer_credentials")
	v.tags(c.Tags)
	return v.errs
}

// groups accepts names of groups.
func (v *validator) groups(field string, groups []string) {
	if len(groups) > maxGroups {
		v.add(field, "has %d groups; at most %d are allowed", len(groups), maxGroups)
		return
	}
	for _, g := range groups {
		if !isGroup(g) {
			v.add(field, "%q is not a word such as gold, or gold@shop for a team with the tag shop: at most 127 characters of "+
				"A-Z a-z 0-9 . _ : / - and one @", g)
			return
		}
	}
}

// isGroup accepts a word, and after an @ the tag of the team whose group it is.
func isGroup(s string) bool {
	word, tag, ofTeam := strings.Cut(s, "@")
	isWord := func(s string) bool {
		return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool { return !isNameRune(r) && r != ':' && r != '/' })
	}
	return isWord(word) && (!ofTeam || isWord(tag))
}

// GroupTeam is the tag of the team that a group belongs to; empty for a group of the admins.
func GroupTeam(group string) string {
	_, tag, _ := strings.Cut(group, "@")
	return tag
}

func (c ConsumerCredentials) validate(v *validator, at string) {
	if c.Unreadable != "" {
		v.add(at, "the stored text cannot be read; write it again")
	}
	if n := len(c.Keys) + len(c.Users) + len(c.Tokens) + len(c.Certificates); n > maxCredentials {
		v.add(at, "has %d credentials; at most %d are allowed", n, maxCredentials)
		return
	}
	for i, k := range c.Keys {
		set, key, _ := strings.Cut(k, "/")
		field := fmt.Sprintf("%s.keys[%d]", at, i)
		v.name(field, set, false)
		v.name(field, key, false)
	}
	for i, u := range c.Users {
		filter, user, _ := strings.Cut(u, "/")
		field := fmt.Sprintf("%s.users[%d]", at, i)
		v.name(field, filter, false)
		if !IsUserName(user) {
			v.add(field, "%q is not the name of a filter and of one of its users, such as staff/ann", u)
		}
	}
	for i, t := range c.Tokens {
		t.validate(v, fmt.Sprintf("%s.tokens[%d]", at, i))
	}
	for i, cert := range c.Certificates {
		cert.validate(v, fmt.Sprintf("%s.certificates[%d]", at, i))
	}
}

func (t TokenCredential) validate(v *validator, at string) {
	v.credentialText(at+".issuer", t.Issuer)
	if (t.Subject == "") == (t.Claim == "") || t.Subject != "" && t.Value != "" {
		v.add(at, `takes either subject, or claim and value, such as {"issuer":"https://login.example.com","subject":"ann"}`)
		return
	}
	claim, value := t.Is()
	v.claim(at+".claim", claim)
	v.credentialText(at+"."+map[bool]string{true: "value", false: "subject"}[t.Claim != ""], value)
}

func (c CertificateCredential) validate(v *validator, at string) {
	form, name := c.Is()
	if name == "" || (CertificateCredential{Subject: name}) != c && (CertificateCredential{URI: name}) != c && (CertificateCredential{DNS: name}) != c {
		v.add(at, `takes exactly one of subject, uri and dns, such as {"uri":"spiffe://example.com/billing"}`)
		return
	}
	v.credentialText(at+"."+form, name)
}

// credentialText accepts a text that is looked up as it is. A control character could not be told from what separates
// the parts of an identity.
func (v *validator) credentialText(field, s string) {
	switch {
	case s == "":
		v.add(field, "is required")
	case len(s) > maxCredential:
		v.add(field, "has %d bytes; at most %d are allowed", len(s), maxCredential)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		v.add(field, "contains a control character")
	}
}

// ParseConsumerCredentials reads the JSON of Consumer_credentials.
func ParseConsumerCredentials(text string) (c ConsumerCredentials, err error) {
	err = decodeStrict(cmp.Or(text, "{}"), &c)
	return c, err
}

// Value stores the credentials as JSON (database/sql).
func (c ConsumerCredentials) Value() (driver.Value, error) {
	if c.Unreadable != "" {
		return c.Unreadable, nil
	}
	b, err := json.Marshal(c)
	return string(b), err
}

// Scan reads what Value stores (database/sql).
func (c *ConsumerCredentials) Scan(src any) error {
	text, err := scanText(src)
	if err != nil {
		return fmt.Errorf("reading credentials: %w", err)
	}
	if *c, err = ParseConsumerCredentials(text); err != nil {
		*c = ConsumerCredentials{Unreadable: text}
	}
	return nil
}

// Claimer is an object that has something for itself alone, which is no object.
type Claimer interface {
	Object
	// Claims are the keys of what it has. No object has such a key.
	Claims() []Key
}

// Claims lists what an object has for itself alone.
func Claims(obj Object) []Key {
	if c, ok := obj.(Claimer); ok {
		return c.Claims()
	}
	return nil
}
