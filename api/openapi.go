package api

import _ "embed"

//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the document, in YAML, with the schema word core_db.
func OpenAPI() []byte { return []byte(openAPI) }
