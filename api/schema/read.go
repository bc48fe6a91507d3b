package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/codesous/sous/api"
)

// Limits of schemas, which protect a compiler that trusts its input: it searches each
// subschema in the list of all others, by its path.
const (
	maxSchemaNesting  = 64   // levels of JSON, in schemas and in validated values
	maxSubschemas     = 1000 // true and false count
	maxSubschemaPath  = 1024 // bytes of a subschema's JSON pointer
	maxNumberLength   = 64   // characters
	maxNumberExponent = 400  // either way: 1e1000000 is 7 characters and 400 KB
)

// draft2020 is the only value of $schema.
const draft2020 = "https://json-schema.org/draft/2020-12/schema"

// reader checks the text of a schema before it is compiled. It walks the document once and
// collects the subschemas, the anchors and the references, which it then resolves.
type reader struct {
	subschemas map[string]bool // by JSON pointer
	anchors    map[string]bool
	refs       []reference
}

// reference is a $ref: the pointer of the keyword and its value.
type reference struct{ at, to string }

// refuse returns the error of a schema at a JSON pointer: "/properties/a" becomes the field
// schema.properties.a.
func refuse(at, format string, args ...any) error {
	path := "schema" + strings.ReplaceAll(at, "/", ".")
	return api.DocumentFieldError(path, fmt.Sprintf(format, args...))
}

// readText returns the document of a schema that is safe to compile, else
// CodeDocumentInvalid. It removes $schema and $id from the root.
func readText(raw []byte) (any, error) {
	if len(raw) > api.MaxSchemaBytes {
		return nil, refuse("", "exceeds %s", api.SizeText(api.MaxSchemaBytes))
	}
	document, err := readJSON(raw)
	if err != nil {
		return nil, refuse("", "%v", err)
	}
	switch root := document.(type) {
	case bool:
		return document, nil
	case map[string]any:
		if draft, has := root["$schema"]; has && draft != draft2020 && draft != draft2020+"#" {
			return nil, refuse("/$schema", "must be %s, or left out", draft2020)
		}
		// A name would be the base of relative references; all allowed ones begin with #.
		delete(root, "$schema")
		delete(root, "$id")
	default:
		return nil, refuse("", "must be an object, true or false")
	}
	r := reader{subschemas: map[string]bool{}, anchors: map[string]bool{}}
	if err := r.read("", document); err != nil {
		return nil, err
	}
	return document, r.resolve()
}

// readJSON parses JSON with bounded numbers and nesting. Numbers stay text (json.Number).
// Values are bounded like schemas, so that both can be walked recursively.
func readJSON(raw []byte) (any, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("is not JSON")
	}
	return document, bounded(document, maxSchemaNesting)
}

// bounded returns an error for a value that is nested deeper than levels, and for a number
// whose exact value would be large. The library computes with exact fractions: 1e1000000
// would become an integer of 400 KB.
func bounded(v any, levels int) error {
	if levels < 0 {
		return fmt.Errorf("nests more than %d levels deep", maxSchemaNesting)
	}
	switch v := v.(type) {
	case json.Number:
		return boundedNumber(string(v))
	case []any:
		for _, item := range v {
			if err := bounded(item, levels-1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := bounded(item, levels-1); err != nil {
				return err
			}
		}
	}
	return nil
}

// boundedNumber looks at the text only. An exponent that does not fit an int is too large.
func boundedNumber(text string) error {
	tooLarge := fmt.Errorf("holds a number of more than %d characters, or an exponent beyond %d", maxNumberLength, maxNumberExponent)
	if len(text) > maxNumberLength {
		return tooLarge
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if err != nil || exponent > maxNumberExponent || exponent < -maxNumberExponent {
			return tooLarge
		}
	}
	return nil
}

// The keywords that contain subschemas, by form.
var (
	keywords = []string{"not", "if", "then", "else", "items", "contains", "additionalProperties",
		"propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	lists    = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	mappings = []string{"$defs", "definitions", "properties", "patternProperties", "dependentSchemas"}
)

// nameLists are the keywords that are lists of names. The metaschema requires unique items,
// which is expensive to check for items that are not strings.
var nameLists = []string{"required", "type"}

// knownDollar are the keywords with a dollar that are supported within one schema. In a
// single resource, $dynamicRef is equivalent to $ref.
var knownDollar = []string{"$ref", "$anchor", "$defs", "$comment"}

// read registers the subschema at a path and those in it. Members that are not keywords
// with subschemas, such as enum or default, are data: they are not walked, and no $ref may
// lead into them.
func (r *reader) read(at string, v any) error {
	if len(at) > maxSubschemaPath {
		return refuse("", "a subschema's path exceeds %s", api.SizeText(maxSubschemaPath))
	}
	r.subschemas[at] = true
	if len(r.subschemas) > maxSubschemas {
		return refuse("", "has more than %d subschemas", maxSubschemas)
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil // true or false; the metaschema rejects other values
	}
	if err := r.keywords(at, object); err != nil {
		return err
	}
	for _, keyword := range keywords {
		if below, has := object[keyword]; has {
			if err := r.read(at+"/"+keyword, below); err != nil {
				return err
			}
		}
	}
	for _, keyword := range lists {
		list, _ := object[keyword].([]any)
		for i, below := range list {
			if err := r.read(at+"/"+keyword+"/"+strconv.Itoa(i), below); err != nil {
				return err
			}
		}
	}
	for _, keyword := range mappings {
		named, _ := object[keyword].(map[string]any)
		for name, below := range named {
			if err := r.read(at+"/"+keyword+"/"+pointerPart(name), below); err != nil {
				return err
			}
		}
	}
	return nil
}

// keywords checks the keywords of a subschema that the metaschema does not restrict, and
// registers its anchor and its reference.
func (r *reader) keywords(at string, object map[string]any) error {
	for name := range object {
		if strings.HasPrefix(name, "$") && !slices.Contains(knownDollar, name) {
			return refuse(at, "%.80s cannot stand here", name)
		}
	}
	for _, obsolete := range []string{"dependencies", "additionalItems"} {
		if _, has := object[obsolete]; has {
			return refuse(at, "%s is of an older draft", obsolete)
		}
	}
	if _, list := object["items"].([]any); list {
		return refuse(at+"/items", "is a list, which is prefixItems now")
	}
	for _, keyword := range nameLists {
		if err := namesOnly(at+"/"+keyword, object[keyword]); err != nil {
			return err
		}
	}
	dependent, _ := object["dependentRequired"].(map[string]any)
	for _, names := range dependent {
		if err := namesOnly(at+"/dependentRequired", names); err != nil {
			return err
		}
	}
	if name, ok := object["$anchor"].(string); ok {
		r.anchors[name] = true
	}
	if to, ok := object["$ref"].(string); ok {
		r.refs = append(r.refs, reference{at + "/$ref", to})
	}
	return nil
}

// namesOnly returns an error for a list with an item that is no string. The metaschema
// refuses values that are no list.
func namesOnly(at string, v any) error {
	list, _ := v.([]any)
	for _, name := range list {
		if _, ok := name.(string); !ok {
			return refuse(at, "must be a list of texts")
		}
	}
	return nil
}

// resolve returns an error for a reference outside the subschemas of the same schema. A
// reference is "#", a pointer ("#/$defs/text") or an anchor ("#text"), percent-encoded.
func (r *reader) resolve() error {
	for _, ref := range r.refs {
		fragment, local := strings.CutPrefix(ref.to, "#")
		if !local {
			return refuse(ref.at, "must begin with #: nothing is loaded from elsewhere")
		}
		plain, err := url.PathUnescape(fragment)
		if err != nil || !r.subschemas[plain] && !r.anchors[plain] {
			return refuse(ref.at, "does not lead to a subschema")
		}
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointerPart escapes a name for a JSON pointer.
func pointerPart(name string) string { return pointerEscapes.Replace(name) }
