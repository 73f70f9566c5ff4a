package translate

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// builtInPage has no scripts, styles and references, so that no browser policy (CSP) blocks it.
const builtInPage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Error {status}</title>
</head>
<body>
<h1>Error {status}</h1>
<p>{title}</p>
<p>Request ID: <code>{request_id}</code></p>
</body>
</html>
`

// page is what browsers show for a refusal: markup, with values between. There is always one text more than there are
// values.
type page struct {
	texts, values []string
	// headers are those of the response.
	headers []*corev3.HeaderValueOption
}

// pageOf returns the page of a listener.
func pageOf(l ir.Listener) page {
	p, text := page{headers: seam.PageHeaders(seam.OwnStyles)}, l.RefusalPage
	if text == "" {
		p.headers, text = seam.PageHeaders(seam.NothingElse), builtInPage
	}
	value := regexp.MustCompile(`\{(?:title|status|request_id)\}`)
	p.texts, p.values = value.Split(text, -1), value.FindAllString(text, -1)
	return p
}

// pageMetadata is the name of a page in the metadata of its listener.
const pageMetadata = "page"

// metadata has the texts by number. So they are in the listener once, and not in each mapper, and Envoy looks for no
// commands in them.
func (p page) metadata() *corev3.Metadata {
	fields := map[string]*structpb.Value{}
	for i, text := range p.texts {
		fields[strconv.Itoa(i)] = structpb.NewStringValue(text)
	}
	return seam.Saying(nil, pageMetadata, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
}

// write puts the page into a mapper. No value can contain markup of a client.
func (p page) write(m *hcmv3.ResponseMapper, title, literal string) {
	commands := map[string]string{"{title}": title, "{status}": "%RESPONSE_CODE%", "{request_id}": seam.RequestID}
	var format strings.Builder
	for i := range p.texts {
		fmt.Fprintf(&format, "%%METADATA(LISTENER:%s:%s:%d)%%", seam.Metadata, pageMetadata, i)
		if i < len(p.values) {
			format.WriteString(commands[p.values[i]])
		}
	}
	rewrite(m, html.EscapeString(literal), seam.Page(format.String()), p.headers)
}
