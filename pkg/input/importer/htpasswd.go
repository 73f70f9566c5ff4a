package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// HashedUser is a user of a file of htpasswd, with the hash of the password.
type HashedUser struct{ Name, Hash string }

// MaxHtpasswd bounds a file of htpasswd.
const MaxHtpasswd = 1 << 20

// otherHashes are what Envoy cannot verify, by the beginning of the hash.
func otherHashes() [][2]string {
	return [][2]string{
		{"$2", "bcrypt"}, {"$apr1$", "MD5 (apr1)"}, {"$1$", "MD5 (crypt)"}, {"$5$", "SHA-256 (crypt)"}, {"$6$", "SHA-512 (crypt)"},
		{"$y$", "yescrypt"}, {"$argon2", "argon2"}, {"{SSHA}", "salted SHA-1"}, {"{SHA", "no valid SHA-1"},
	}
}

// ReadHtpasswd reads the users of a file of htpasswd (Apache), sorted by name. Envoy verifies SHA-1 only (htpasswd -s). The
// error, an *Error, names each other line; the users are those of the rest. Neither has a password or a hash of these.
func ReadHtpasswd(data []byte) (users []HashedUser, err error) {
	if len(data) > MaxHtpasswd {
		return nil, &Error{Message: "the file has more than 1 MiB"}
	}
	wrong := &Error{Message: "lines whose users cannot be imported:"}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, MaxHtpasswd+1)
	for number := 1; lines.Scan(); number++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, hash, found := strings.Cut(text, ":")
		fault := hashFault(hash)
		switch {
		case !found || !model.IsUserName(name):
			name, fault = "", "this is not NAME:HASH, with a name of A-Z a-z 0-9 . _ @ + -"
		case slices.ContainsFunc(users, func(u HashedUser) bool { return u.Name == name }):
			fault = "is in the file twice"
		}
		if fault == "" {
			users = append(users, HashedUser{name, hash})
			continue
		}
		wrong.Problems = append(wrong.Problems, Problem{Line: number, Where: name, Message: fault})
	}
	slices.SortFunc(users, func(a, b HashedUser) int { return strings.Compare(a.Name, b.Name) })
	if len(wrong.Problems) > 0 {
		return users, wrong
	}
	if len(users) == 0 {
		return nil, &Error{Message: "the file has no users"}
	}
	return users, lines.Err()
}

// hashFault says why Envoy cannot verify a hash. It does not repeat it.
func hashFault(hash string) string {
	if model.IsKeyHash(hash) {
		return ""
	}
	form := "crypt, or a password that is not hashed"
	for _, other := range otherHashes() {
		if strings.HasPrefix(hash, other[0]) {
			form = other[1]
			break
		}
	}
	return fmt.Sprintf("the password is in a form that Envoy does not verify: %s. Only SHA-1 works, as htpasswd -s writes it", form)
}

// UserOptions say what an import of users creates.
type UserOptions struct {
	// Filter is the name of the filter.
	Filter string
	// Consumers makes each user a credential of the consumer with the user's name.
	Consumers bool
}

// StoredUsers is what the server has, as GET returns it.
type StoredUsers struct {
	// Filter is nil if there is none with the name.
	Filter    json.RawMessage
	Consumers []json.RawMessage
}

// ImportUsers returns the configuration document after which a filter has the users and no others. What exists keeps
// everything else.
func ImportUsers(users []HashedUser, o UserOptions, stored StoredUsers) ([]byte, error) {
	filter, err := userFilter(users, o.Filter, stored.Filter)
	if err != nil {
		return nil, err
	}
	doc := map[string]any{"version": 1, "filters": []any{filter}}
	if o.Consumers {
		if doc["consumers"], err = userConsumers(users, o.Filter, stored.Consumers); err != nil {
			return nil, err
		}
	}
	return json.Marshal(doc)
}

func userFilter(users []HashedUser, name string, stored json.RawMessage) (map[string]any, error) {
	filter := map[string]any{"filter_name": name, "filter_type": model.FilterBasicAuth}
	config := map[string]any{}
	if stored != nil {
		var f struct {
			Type   string         `json:"filter_type"`
			Config map[string]any `json:"filter_config"`
			Tags   model.Tags     `json:"tags"`
		}
		if err := json.Unmarshal(stored, &f); err != nil {
			return nil, fmt.Errorf("reading filter %s: %w", name, err)
		}
		if (&model.Filter{Type: f.Type}).TypeName() != model.FilterBasicAuth {
			return nil, fmt.Errorf("filter %s is of type %s; choose another name", name, f.Type)
		}
		config, filter["filter_type"], filter["tags"] = f.Config, f.Type, f.Tags
	}
	list := make([]map[string]string, len(users))
	for i, u := range users {
		list[i] = map[string]string{"name": u.Name, "password": u.Hash}
	}
	config["users"], filter["filter_config"] = list, config
	return filter, nil
}

func userConsumers(users []HashedUser, filter string, stored []json.RawMessage) ([]map[string]any, error) {
	known := map[string]model.Consumer{}
	for _, data := range stored {
		var c model.Consumer
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, fmt.Errorf("reading a consumer: %w", err)
		}
		known[c.Name] = c
	}
	consumers := make([]map[string]any, len(users))
	for i, u := range users {
		c, is := known[u.Name]
		if id := filter + "/" + u.Name; !slices.Contains(c.Credentials.Users, id) {
			c.Credentials.Users = append(c.Credentials.Users, id)
		}
		consumers[i] = map[string]any{"consumer_name": u.Name, "consumer_credentials": c.Credentials}
		if is {
			consumers[i]["consumer_groups"], consumers[i]["tags"] = c.Groups, c.Tags
		}
	}
	return consumers, nil
}
