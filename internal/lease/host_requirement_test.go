package lease

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseRequirements_Grammar(t *testing.T) {
	t.Parallel()
	vcpus := Requirement{">=", "vcpus", "2"}
	for _, c := range []struct {
		text string
		want []Requirement
		bad  bool
	}{
		{"", nil, false},
		{"  ", nil, false},
		{"[]", nil, false},
		{`[">=","$vcpus","2"]`, []Requirement{vcpus}, false},
		{`["=", "$gpu", "True"]`, []Requirement{{"==", "gpu", "True"}}, false},
		{`["and",[">=","$vcpus","2"]]`, []Requirement{vcpus}, false},
		{`["and",[">=","$vcpus","2"],["!=","$gpu","x"]]`, []Requirement{vcpus, {"!=", "gpu", "x"}}, false},
		{`["and"]`, nil, true},
		{`["or",[">=","$vcpus","2"],["!=","$gpu","x"]]`, nil, true},
		{`["and",["and",[">=","$vcpus","2"]]]`, nil, true},
		{`[">=","$vcpus",2]`, nil, true},
		{`[">=","$vcpus",null]`, nil, true},
		{`[">=","$vcpus"]`, nil, true},
		{`[">=","$vcpus","2","3"]`, nil, true},
		{`[">=","vcpus","2"]`, nil, true},
		{`[">=","$","2"]`, nil, true},
		{`[">=","$vcpus",""]`, nil, true},
		{`["in","$vcpus","2"]`, nil, true},
		{`[["and"]]`, nil, true},
		{`[null,"$a","b"]`, nil, true},
		{`null`, nil, true},
		{`{}`, nil, true},
		{`"x"`, nil, true},
		{`[">=","$vcpus","2"`, nil, true},
		{`[">=","$vcpus","2"] x`, nil, true},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			got, err := ParseRequirements(c.text)
			if c.bad != (kindOf(err) == MalformedRequirements) {
				t.Errorf(
					"parse the requirements: got error %v, want a fault of kind MalformedRequirements: %t",
					err,
					c.bad,
				)
			}
			if d := cmp.Diff(c.want, got); !c.bad && d != "" {
				t.Errorf("parse the requirements: result differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestParseRequirements_FaultQuotesAnExcerpt(t *testing.T) {
	t.Parallel()
	_, err := ParseRequirements("x" + strings.Repeat("é", 300))
	if want := `Malformed requirements "x` + strings.Repeat("é", 198) + `…"`; err == nil ||
		err.Error() != want {
		t.Errorf("parse long requirements that are no JSON: got error %v, want %s", err, want)
	}
}

func TestNormalizeRequirements_KeepsMeaningWithoutBlanks(t *testing.T) {
	t.Parallel()
	blanks := strings.Repeat(" \t\n", 5000)
	for text, want := range map[string]string{
		"":                                    "",
		blanks:                                "",
		"[" + blanks + "]":                    "[]",
		`["=", "$gpu", "a b"]`:                `["=","$gpu","a b"]`,
		blanks + `["==","$gpu","x"]` + blanks: `["==","$gpu","x"]`,
		`[ "and" , [ ">=" , "$n" , "2" ] ]`:   `["and",[">=","$n","2"]]`,
		`["<", "$\u0061\u00e9", "\u0026\/"]`:  `["<","$aé","&/"]`,
		`["=", "$a", "\"\\"]`:                 `["=","$a","\"\\"]`,
		`["or", `:                             `["or", `,
		`["=", "$a", 1]`:                      `["=", "$a", 1]`,
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			got := NormalizeRequirements(text)
			if got != want || NormalizeRequirements(got) != got {
				t.Errorf("normalize %.50q: got %.50q, and of that %.50q; want %q twice",
					text, got, NormalizeRequirements(got), want)
			}
			before, _ := ParseRequirements(text)
			if after, _ := ParseRequirements(got); !cmp.Equal(before, after) {
				t.Errorf("normalize %.50q: got the requirements %v, want %v", text, after, before)
			}
		})
	}
}

func TestRequirement_ComparesNumbersAsNumbersAndTextAsText(t *testing.T) {
	t.Parallel()
	have := &Host{
		VCPUs:        8,
		Hostname:     "cmp-1",
		Reservable:   true,
		Capabilities: map[string]string{"n": "10", "gpu": "a100", "vcpus": "99"},
	}
	for _, c := range []struct {
		r    Requirement
		want bool
	}{
		{Requirement{"==", "vcpus", "8"}, true}, // a capability does not override a base property
		{Requirement{"==", "vcpus", "8.0"}, true},
		{Requirement{">=", "n", "9"}, true}, // numbers compare as numbers
		{Requirement{"<", "n", "9"}, false},
		{Requirement{">", "gpu", "9"}, true}, // other values compare as text
		{Requirement{"!=", "gpu", "b"}, true},
		{Requirement{"<=", "gpu", "a100"}, true},
		// without the property, a host meets only requirements with null
		{Requirement{"!=", "missing", "b"}, false},
		{Requirement{"==", "status", "null"}, true},
		{Requirement{"!=", "vcpus", "null"}, true},
		{Requirement{"==", "vcpus", "null"}, false},
	} {
		t.Run(c.r.Key+c.r.Op+c.r.Value, func(t *testing.T) {
			t.Parallel()
			if got := have.Meets([]Requirement{c.r}); got != c.want {
				t.Errorf("compare the properties of a host: got %t, want %t", got, c.want)
			}
		})
	}
}

func TestRequirement_ComparesDecimalsAsExactNumbers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.StringMatching(`[+-]?0{0,2}[0-9]{1,4}(\.[0-9]{1,3}0{0,2})?`)
		have, want := texts.Draw(t, "have"), texts.Draw(t, "want")
		x, _ := new(big.Rat).SetString(have)
		y, _ := new(big.Rat).SetString(want)
		if got := compareValues(have, want); got != x.Cmp(y) {
			t.Fatalf("compare %s with %s: got %d, want %d", have, want, got, x.Cmp(y))
		}
	})
}

func TestParseRequirements_AcceptsOrRefusesEveryText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`\[("and",)?(\[?"(=|>=|or)","\$[a-z]*","?[0-9a-z]*"?\]?,?)*\]`)).
			Draw(t, "text")
		rs, err := ParseRequirements(text)
		if err != nil && kindOf(err) != MalformedRequirements {
			t.Fatalf("parse %q: got error %v, want none or a fault of kind MalformedRequirements", text, err)
		}
		for _, r := range rs {
			if r.Key == "" || r.Value == "" {
				t.Fatalf("parse %q: got requirement %+v, want a requirement with a key and a value", text, r)
			}
			r.MetBy(r.Value, true)
		}
	})
}

func FuzzParseRequirements(f *testing.F) {
	for _, seed := range []string{"", "[]", `[">=","$vcpus","2"]`, `["and",["=","$gpu","True"],["!=","$a","null"]]`, `["and"]`, `[null]`, `["<","$a","1e999999999"]`} {
		f.Add(seed, "2")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		requirements, err := ParseRequirements(text)
		if err != nil {
			if kindOf(err) != MalformedRequirements {
				t.Errorf(
					"parse the requirements %q: got error %v, want a fault of kind MalformedRequirements",
					text,
					err,
				)
			}
			return
		}
		normal := NormalizeRequirements(text)
		if got, err := ParseRequirements(normal); err != nil || !cmp.Equal(requirements, got) ||
			NormalizeRequirements(normal) != normal {
			t.Errorf(
				"normalize %q: got %q with the requirements %v, error %v; want %v in a form that does not change again",
				text, normal, got, err, requirements,
			)
		}
		if len(requirements) == 0 {
			return
		}
		list := []any{"and"}
		for _, r := range requirements {
			list = append(list, []string{r.Op, "$" + r.Key, r.Value})
			if equal := (Requirement{"==", r.Key, r.Value}).MetBy(value, true); r.Value != nullValue &&
				equal == (Requirement{"!=", r.Key, r.Value}).MetBy(value, true) {
				t.Errorf(
					"a host with the value %q: meets both or neither of == and != of %q; want exactly one",
					value,
					r.Value,
				)
			}
		}
		again, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseRequirements(string(again)); err != nil || !cmp.Equal(requirements, got) {
			t.Errorf("parse %s, which has the requirements of %q: got %v, error %v; want %v",
				again, text, got, err, requirements)
		}
	})
}
