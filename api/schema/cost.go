package schema

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of the cost of a validation, roughly in nanoseconds, and of its depth. Before a
// validation the compiled schema is walked with the value as the validator does, subschema
// by subschema, until the sum exceeds the budget. A schema can require 2^n evaluations, also
// through the members of a value, and the validator would perform all of them and keep a
// failure of each. The walk counts all branches, since it cannot know which ones fail.
//
// In this schema, d30 applies d0 about 10^9 times to one value. The walk ends after at most
// 75,000 subschemas (costBudget / costEvaluation):
//
//	{"$ref": "#/$defs/d30", "$defs": {
//	  "d0": {"type": "string"},
//	  "d1": {"allOf": [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d0"}]},
//	  …
//	  "d30": {"allOf": [{"$ref": "#/$defs/d29"}, {"$ref": "#/$defs/d29"}]}}}
const (
	costBudget = 30_000_000 // for each 64 KiB of the value
	costDepth  = 400        // subschemas within subschemas

	costEvaluation = 400
	costLevel      = 20 // of a failure's path, and of the search for cycles
	costMember     = 100
	costNumber     = 2000 // which is compared as a fraction
	costName       = 20   // that is required, or allowed
	costMatch      = 200
	costStep       = 6 // of a pattern: an instruction and a byte
	costPair       = 20
)

// weight is the cost of each evaluation of a subschema that does not depend on the value.
// It is computed once, by weigh.
type weight struct {
	names   int64 // that are required
	values  int64 // of enum and const, including nested ones
	numbers int64 // among these
	bytes   int64 // of texts among them
}

// weigh computes the weights of all subschemas that s reaches. A subschema may be reached
// in several ways; the map ends the recursion.
func (s *Schema) weigh(sub *jsonschema.Schema) {
	if _, done := s.weights[sub]; done {
		return
	}
	w := weight{names: int64(len(sub.Required))}
	for _, names := range sub.DependentRequired {
		w.names += int64(len(names))
	}
	if sub.Enum != nil {
		for _, v := range sub.Enum.Values {
			w.add(v)
		}
	}
	if sub.Const != nil {
		w.add(*sub.Const)
	}
	s.weights[sub] = w
	for _, next := range slices.Concat(inPlace(sub), inMembers(sub)) {
		s.weigh(next)
	}
}

// add adds a value of enum or const, which the validator compares with the whole value.
func (w *weight) add(v any) {
	w.values++
	switch v := v.(type) {
	case json.Number:
		w.numbers++
	case string:
		w.bytes += int64(len(v))
	case []any:
		for _, item := range v {
			w.add(item)
		}
	case map[string]any:
		for name, item := range v {
			w.bytes += int64(len(name))
			w.add(item)
		}
	}
}

// circular reports whether one of the schemas is applied to the same value again, which the
// validator would follow without end. A schema that is applied to a member of the value, as
// in a tree, is not circular: the value ends.
func circular(all map[*jsonschema.Schema]weight) bool {
	const (
		entered = 1
		left    = 2
	)
	seen := make(map[*jsonschema.Schema]int, len(all))
	var enter func(*jsonschema.Schema) bool
	enter = func(s *jsonschema.Schema) bool {
		if seen[s] != 0 {
			return seen[s] == entered
		}
		seen[s] = entered
		for _, next := range inPlace(s) {
			if enter(next) {
				return true
			}
		}
		seen[s] = left
		return false
	}
	for s := range all {
		if enter(s) {
			return true
		}
	}
	return false
}

// inPlace returns the subschemas that s applies to the same value, one level deep.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, one := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		if one != nil {
			out = append(out, one)
		}
	}
	return slices.AppendSeq(out, maps.Values(s.DependentSchemas))
}

// inMembers returns the subschemas that s applies to members and their names.
func inMembers(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Clone(s.PrefixItems)
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for _, one := range []*jsonschema.Schema{additional, s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems} {
		if one != nil {
			out = append(out, one)
		}
	}
	out = slices.AppendSeq(out, maps.Values(s.Properties))
	return slices.AppendSeq(out, maps.Values(s.PatternProperties))
}

// cost returns the cost of validating value, or a number above budget if it is more than that.
// It takes time in proportion to the smaller of the cost and the budget.
func (s *Schema) cost(value any, budget int64) int64 {
	c := cost{schema: s, left: budget}
	c.visit(s.root, value, 0)
	return budget - c.left
}

// cost is the remaining budget of a validation. It is negative once the budget is exceeded,
// which ends all loops.
type cost struct {
	schema *Schema
	left   int64
}

// visit subtracts the cost of applying s to v and to its members. depth counts the
// subschemas around s; each level makes a failure's path longer.
func (c *cost) visit(s *jsonschema.Schema, v any, depth int64) {
	c.left -= costEvaluation + costLevel*depth
	if depth > costDepth {
		c.left = -1
	}
	if c.left < 0 || s.Bool != nil {
		return
	}
	w := c.schema.weights[s]
	c.left -= costName*(w.names+w.values) + w.bytes/16
	switch v := v.(type) {
	case json.Number:
		c.left -= costNumber * (1 + w.numbers)
	case string:
		c.left -= int64(len(v)) / 4
		c.match(s.Pattern, v)
	case []any:
		c.left -= costNumber * w.numbers
		c.array(s, v, depth+1)
	case map[string]any:
		c.left -= costNumber * w.numbers
		c.object(s, v, depth+1)
	}
	for _, next := range inPlace(s) {
		if c.left < 0 {
			return
		}
		c.visit(next, v, depth+1)
	}
}

// match subtracts the cost of matching a pattern: Go's matcher takes time in proportion to
// the text and the instructions. re is nil without a pattern.
func (c *cost) match(re jsonschema.Regexp, text string) {
	if p, ok := re.(*pattern); ok {
		c.left -= costMatch + costStep*p.size*int64(len(text))
	}
}

// object subtracts the cost of the members of an object. It matches the names against
// patternProperties itself, since the result selects the subschemas.
func (c *cost) object(s *jsonschema.Schema, object map[string]any, depth int64) {
	c.left -= costMember * int64(len(object))
	additional, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for name, v := range object {
		if c.left < 0 {
			return
		}
		property := s.Properties[name]
		if property == nil {
			property = additional // if no pattern matches
		}
		for _, next := range []*jsonschema.Schema{property, s.UnevaluatedProperties} {
			if next != nil {
				c.visit(next, v, depth)
			}
		}
		if s.PropertyNames != nil {
			c.visit(s.PropertyNames, name, depth)
		}
		for re, next := range s.PatternProperties {
			c.match(re, name)
			if c.left >= 0 && re.MatchString(name) {
				c.visit(next, v, depth)
			}
		}
	}
}

// array subtracts the cost of the items of an array.
func (c *cost) array(s *jsonschema.Schema, array []any, depth int64) {
	c.left -= costMember * int64(len(array))
	if s.UniqueItems {
		c.unique(array)
	}
	for i, v := range array {
		if c.left < 0 {
			return
		}
		item := s.Items2020
		if i < len(s.PrefixItems) {
			item = s.PrefixItems[i]
		}
		for _, next := range []*jsonschema.Schema{item, s.Contains, s.UnevaluatedItems} {
			if next != nil {
				c.visit(next, v, depth)
			}
		}
	}
}

// unique subtracts the cost of comparing all items of an array. The validator hashes them;
// lists and objects can be built to have the same hash, and each is then compared with all
// others. So the cost of n plain items grows with n, and that of n nested ones with n².
func (c *cost) unique(array []any) {
	var w weight
	nested := len(array) <= 20 // which are compared without hashes
	for _, v := range array {
		switch v.(type) {
		case []any, map[string]any:
			nested = true
		}
		w.add(v)
	}
	each := costMember*w.values + costNumber*w.numbers + w.bytes
	c.left -= each
	if nested {
		n := int64(len(array))
		c.left -= n * (costPair*w.values + costNumber*w.numbers + w.bytes/16)
	}
}
