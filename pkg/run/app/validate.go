package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// Finding is what is wrong with a document, or what is worth to know.
type Finding struct {
	// Line is the line in the document, of the guilty key or of its object; 0 means none.
	Line int
	// Field is the guilty key of the object that begins on Line, or of one in it; empty means none.
	Field   string
	Message string
}

// Validation is what a server would say to a document.
type Validation struct {
	Errors, Warnings []Finding
	// Objects is the number of objects in the document.
	Objects int
	// Assumed counts the objects with contents that the document does not have, or that only a server can open: they are
	// taken for good.
	Assumed int
}

// maxFindings bounds the errors of a validation.
const maxFindings = 100

// Validate applies a document to an empty store in a temporary directory, which it removes, compiles it as a server does
// before it stores anything, and takes all back. There is no listener. Addresses of upstreams and scripts are allowed,
// because the settings of the server that will get the document are not known. mediaType is that of document.Parse. A
// partial document may name what it does not have. The error is about the work, not about the document.
func Validate(ctx context.Context, data []byte, mediaType string, partial bool) (v Validation, err error) {
	doc, err := document.Parse(data, mediaType)
	if err != nil {
		v.Errors = findings(err, nil)
		return v, nil
	}
	v.Objects = len(doc.Items)
	if partial {
		v.Warnings = assumeNamed(doc)
	}
	dir, err := os.MkdirTemp("", "gatehouse-validate-")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sealer, err := seal.NewMemory()
	if err != nil {
		return v, err
	}
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "gatehouse.db"), Log: slog.New(slog.DiscardHandler), Sealer: sealer})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if v.Assumed, err = assumeContents(doc, sealer); err != nil {
		return v, err
	}
	check := validator{db: db, doc: doc, rules: precheck.Rules{
		Upstreams: egress.Lists{AnySocket: true}, Lua: true, Unseal: db.Unseal,
	}}
	return v, check.run(ctx, &v)
}

// unknownText stands for a text that is not in the document: long enough for a password, and no more than a text.
const unknownText = "a text that this document does not have"

// assumeContents gives secrets without contents some that work, replaces texts that only a server can open, and returns
// how many objects it did that for.
func assumeContents(doc *document.Document, sealer model.Sealer) (objects int, err error) {
	certificates := certificateSecrets(doc)
	var hosts []string
	for _, item := range doc.Items {
		if svc, is := item.Object.(*model.Service); is && svc.FQDN != "*" {
			hosts = append(hosts, svc.FQDN)
		}
	}
	for _, item := range doc.Items {
		obj, ok := item.Object.(model.Confidential)
		if !ok {
			continue
		}
		assumed := writeUnknown(obj)
		err := obj.MapSealed(func(_, place string) (string, error) {
			assumed = true
			return sealer.Seal(unknownText, place)
		})
		if err != nil {
			return objects, fmt.Errorf("reading the sealed texts of %s: %w", item.At, err)
		}
		if secret, is := obj.(*model.Secret); is && (assumed || secret.Cert == "" && secret.PrivateKey == "" && secret.Value == "") {
			assumed = true
			secret.Cert, secret.PrivateKey, secret.Value = "", "", unknownText
			if certificates[secret.Name] || secret.Type == model.SecretTLS {
				secret.Value = ""
				if secret.Cert, secret.PrivateKey, err = standIn(hosts); err != nil {
					return objects, err
				}
			}
		}
		if assumed {
			objects++
		}
	}
	return objects, nil
}

// writeUnknown replaces what a dump shows in place of a sealed text, and reports whether there is some.
func writeUnknown(obj model.Object) bool {
	var config *model.JSON
	switch o := obj.(type) {
	case *model.Filter:
		config = &o.Config
	case *model.GlobalConfig:
		config = &o.Config
	default:
		return false
	}
	shown := strings.NewReplacer(`"`+model.Redacted+`"`, `"`+unknownText+`"`, `"\u003credacted\u003e"`, `"`+unknownText+`"`)
	before := *config
	*config = model.JSON(shown.Replace(string(before)))
	return *config != before
}

// certificateSecrets names the secrets that hold certificates, by what uses them.
func certificateSecrets(doc *document.Document) map[string]bool {
	names := map[string]bool{}
	for _, item := range doc.Items {
		for _, l := range item.Lists[model.KindServiceSecret] {
			names[l.Name] = true
		}
		kind := item.Object.Key().Kind
		if namer, is := item.Object.(model.Namer); is && (kind == model.KindService || kind == model.KindUpstream) {
			for _, key := range namer.Names() {
				names[key.Name()] = true
			}
		}
	}
	return names
}

// standIn returns a certificate for hosts that signs itself, and its key.
func standIn(hosts []string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stand-in"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return "", "", fmt.Errorf("making a certificate: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), nil
}

type validator struct {
	db    *sqlstore.Store
	doc   *document.Document
	rules precheck.Rules
}

var errTakeBack = errors.New("nothing is stored")

// run tries the document until no error is left that can be taken out of the way: a name in a list that does not exist.
func (c validator) run(ctx context.Context, v *Validation) error {
	for len(v.Errors) < maxFindings {
		found, err := c.try(ctx, v)
		if err != nil {
			return err
		}
		for _, f := range found {
			f.Field = regexp.MustCompile(`\[\d+\]$`).ReplaceAllString(f.Field, "") // others of the list are gone
			v.Errors = append(v.Errors, f)
		}
		if len(found) != 1 || !c.dropLink(found[0].Line) {
			return nil
		}
	}
	return nil
}

// try applies the document and takes it back. Warnings are those of a document without errors.
func (c validator) try(ctx context.Context, v *Validation) (found []Finding, err error) {
	_, err = c.db.Write(ctx, store.Origin{Actor: "validate", Request: "validate"}, func(w store.Writer) error {
		result, err := document.Apply(w, c.doc, document.ApplyOptions{Force: true})
		if err != nil {
			return err
		}
		if err := c.rules.Check(w, w.Written()); err != nil {
			if found = c.checkEach(w); len(found) > 0 {
				return errTakeBack
			}
			return err
		}
		warnings, err := c.rules.Warnings(w, w.Written())
		if err != nil {
			return err
		}
		for _, text := range slices.Concat(result.Warnings, w.Warnings(), warnings) {
			v.Warnings = append(v.Warnings, c.located(text))
		}
		return errTakeBack
	})
	switch {
	case errors.Is(err, errTakeBack), err == nil:
		return found, nil
	case model.IsKind(err, model.Unavailable):
		return nil, err
	}
	if _, ok := errors.AsType[*model.Error](err); !ok {
		return nil, err
	}
	return findings(err, c.doc), nil
}

// checkEach compiles each object alone, to find all that cannot work.
func (c validator) checkEach(w store.Writer) (found []Finding) {
	seen := map[string]bool{}
	for change, err := range w.Written()() {
		if err != nil || len(found) == maxFindings {
			return found
		}
		one := func(kinds ...model.Kind) iter.Seq2[store.Written, error] {
			return func(yield func(store.Written, error) bool) {
				if len(kinds) == 0 || slices.Contains(kinds, change.Key.Kind) {
					yield(change, nil)
				}
			}
		}
		err := c.rules.Check(w, one)
		if err == nil || seen[err.Error()] {
			continue
		}
		seen[err.Error()] = true
		found = append(found, findings(err, c.doc)...)
	}
	return found
}

// dropLink removes the name on a line from its list, and reports whether there is one.
func (c validator) dropLink(line int) bool {
	for _, item := range c.doc.Items {
		for kind, links := range item.Lists {
			at := slices.IndexFunc(links, func(l document.Link) bool { return l.Line == line })
			if at >= 0 && line > 0 && item.Line != line {
				item.Lists[kind] = slices.Delete(slices.Clone(links), at, at+1)
				return true
			}
		}
	}
	return false
}

// located finds the line that a warning begins with.
func (c validator) located(text string) Finding {
	line, rest := cutLine(text)
	return Finding{Line: line, Message: rest}
}

// cutLine cuts "line 12: " from the front of a text.
func cutLine(text string) (line int, rest string) {
	m := regexp.MustCompile(`^line (\d+)(?:: |$)`).FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, text
	}
	return line, text[len(m[0]):]
}

// findings makes findings of an error, one for each field. doc has the lines of objects; nil means that the error names
// lines.
func findings(err error, doc *document.Document) []Finding {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return []Finding{{Message: err.Error()}}
	}
	line, message := cutLine(e.Message)
	if m := regexp.MustCompile(`: line (\d+): `).FindStringSubmatch(message); line == 0 && doc == nil && m != nil { // unreadable
		line, _ = strconv.Atoi(m[1])
	}
	if line == 0 && doc != nil {
		line = lineOf(doc, e.Path)
	}
	if len(e.Fields) == 0 {
		if m := regexp.MustCompile(`(?s)^([a-z]+\[\S+): (.+)$`).FindStringSubmatch(message); m != nil { // the place of an item
			return []Finding{{Line: line, Field: m[1], Message: m[2]}}
		}
		return []Finding{{Line: line, Message: message}}
	}
	var list []Finding
	for _, f := range e.Fields {
		at, field := cutLine(f.Field)
		found := Finding{Line: at, Field: field, Message: f.Message}
		if at == 0 {
			found.Line = line
		}
		list = append(list, found)
	}
	return list
}

// lineOf returns the line of the object with a path, or of the one that it is a part of or attached to.
func lineOf(doc *document.Document, path string) int {
	line, longest := 0, -1
	for _, item := range doc.Items {
		own := item.Object.Key().Path()
		if (path == own || len(path) > len(own) && path[:len(own)+1] == own+"/") && len(own) > longest {
			line, longest = item.Line, len(own)
		}
	}
	return line
}
