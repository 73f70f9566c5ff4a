package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is the declarations of a Go package.
type source struct {
	types map[string]*goType
	// values are constants by name, and the texts of functions that return a list of texts.
	values map[string]*yaml.Node
}

type goType struct {
	name string
	expr ast.Expr
	doc  doc
}

// doc is the comment of a type or field.
type doc struct {
	description string
	page, or    string
	required    bool
	keywords    map[string]*yaml.Node
}

// parseModel reads the Go files of a directory.
func parseModel(dir string) (*source, error) {
	s := &source{types: map[string]*goType{}, values: map[string]*yaml.Node{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.readValues(f)
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, errors.New(dir + " has no Go files")
	}
	for _, f := range files {
		if err := s.readTypes(f); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *source) readTypes(f *ast.File) error {
	for _, decl := range f.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE || len(d.Specs) != 1 {
			continue
		}
		spec, ok := d.Specs[0].(*ast.TypeSpec)
		if !ok {
			continue
		}
		doc, err := s.readDoc(d.Doc)
		if err != nil {
			return fmt.Errorf("type %s: %w", spec.Name.Name, err)
		}
		for _, verb := range []string{" is ", " are ", " "} {
			doc.description = strings.TrimPrefix(doc.description, spec.Name.Name+verb)
		}
		s.types[spec.Name.Name] = &goType{spec.Name.Name, spec.Type, doc}
	}
	return nil
}

// readValues reads the constants that are literals, and functions that return a list of texts.
func (s *source) readValues(f *ast.File) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				for i := 0; ok && d.Tok == token.CONST && i < len(v.Values); i++ {
					if lit, ok := v.Values[i].(*ast.BasicLit); ok {
						s.values[v.Names[i].Name] = literal(lit)
					}
				}
			}
		case *ast.FuncDecl:
			if d.Recv != nil || d.Body == nil || len(d.Body.List) != 1 {
				continue
			}
			ret, ok := d.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(ret.Results) != 1 {
				continue
			}
			if list := texts(ret.Results[0]); list != nil {
				s.values[d.Name.Name] = list
			}
		}
	}
}

func texts(e ast.Expr) *yaml.Node {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, elt := range lit.Elts {
		text, ok := elt.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			return nil
		}
		list.Content = append(list.Content, literal(text))
	}
	return list
}

// literal returns a Go literal as YAML, in which it has the same form.
func literal(lit *ast.BasicLit) *yaml.Node {
	var n yaml.Node
	if yaml.Unmarshal([]byte(lit.Value), &n) != nil || n.Kind != yaml.DocumentNode {
		return scalar(lit.Value)
	}
	n.Content[0].Style = 0
	return n.Content[0]
}

// readDoc reads a comment: a description, then keywords.
func (s *source) readDoc(group *ast.CommentGroup) (doc, error) {
	d := doc{keywords: map[string]*yaml.Node{}}
	var found []string
	for line := range strings.Lines(group.Text()) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "+"):
			found = append(found, line[1:])
		case len(found) > 0:
			found[len(found)-1] += " " + line
		default:
			d.description = strings.TrimSpace(d.description + " " + line)
		}
	}
	for _, keyword := range found {
		name, value, _ := strings.Cut(keyword, "=")
		switch name {
		case "required":
			d.required = true
		case "page":
			d.page = value
		case "or":
			d.or = value
		case "schema":
			d.keywords["$ref"] = get(reference("schemas", value), "$ref")
		default:
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(value), &n); err != nil || n.Kind != yaml.DocumentNode {
				return d, fmt.Errorf("the value of +%s is no YAML: %s", name, value)
			}
			if !slices.Contains(order(), name) {
				return d, fmt.Errorf("+%s is not a keyword; known keywords are required, page, or, schema, %s", name, strings.Join(order(), ", "))
			}
			d.keywords[name] = n.Content[0]
			if name != "example" {
				d.keywords[name] = s.resolved(n.Content[0])
			}
		}
	}
	return d, nil
}

// resolved replaces the names of constants with their values.
func (s *source) resolved(n *yaml.Node) *yaml.Node {
	if known := s.values[n.Value]; known != nil && n.Kind == yaml.ScalarNode {
		return known
	}
	for i, part := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			n.Content[i] = s.resolved(part)
		}
	}
	return n
}
