package attribute_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"berth/internal/network/attribute"
)

// check reads the JSON value and returns the result as text, or "refused".
func check[T any](read func(json.RawMessage) (T, error), raw string) string {
	v, err := read(json.RawMessage(raw))
	if err != nil {
		return "refused"
	}
	return fmt.Sprint(v)
}

func TestReaders_AcceptedAndRefusedValues(t *testing.T) {
	t.Parallel()
	const id = "5a000000-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct{ got, want string }{
		"text":                            {check(attribute.Text(3), `"abc"`), "abc"},
		"text too long":                   {check(attribute.Text(3), `"abcd"`), "refused"},
		"text counts characters":          {check(attribute.Text(3), `"äöü"`), "äöü"},
		"text of several lines":           {check(attribute.Text(9), `"a\tb\r\nc"`), "a\tb\r\nc"},
		"text with a NUL":                 {check(attribute.Text(9), `"a\u0000"`), "refused"},
		"text with an escape":             {check(attribute.Text(9), `"a\u001b"`), "refused"},
		"text with a delete":              {check(attribute.Text(9), `"a\u007f"`), "refused"},
		"text with a next line":           {check(attribute.Text(9), `"a\u0085"`), "refused"},
		"line":                            {check(attribute.Line(9), `"ä ☃"`), "ä ☃"},
		"line too long":                   {check(attribute.Line(3), `"abcd"`), "refused"},
		"line null":                       {check(attribute.Line(3), `null`), "refused"},
		"line with a tab":                 {check(attribute.Line(9), `"a\tb"`), "refused"},
		"line with a line feed":           {check(attribute.Line(9), `"a\nb"`), "refused"},
		"line with a carriage return":     {check(attribute.Line(9), `"a\rb"`), "refused"},
		"line with a line separator":      {check(attribute.Line(9), `"a\u2028b"`), "refused"},
		"line with a paragraph separator": {check(attribute.Line(9), `"a\u2029b"`), "refused"},
		"text null":                       {check(attribute.Text(3), `null`), "refused"},
		"bool":                            {check(attribute.Bool, `true`), "true"},
		"bool as text":                    {check(attribute.Bool, `"False"`), "false"},
		"bool as number":                  {check(attribute.Bool, `1`), "true"},
		"bool unknown word":               {check(attribute.Bool, `"maybe"`), "refused"},
		"int as text":                     {check(attribute.Int(1, 10), `"7"`), "7"},
		"int beyond the range":            {check(attribute.Int(1, 10), `11`), "refused"},
		"UUID in upper case":              {check(attribute.UUID, `"5A000000-0000-4000-8000-000000000001"`), id},
		"UUID without dashes":             {check(attribute.UUID, `"5a000000000040008000000000000001"`), "refused"},
		"MAC address with dashes":         {check(attribute.MAC, `"FA-16-3E-00-00-01"`), "fa:16:3e:00:00:01"},
		"MAC address multicast":           {check(attribute.MAC, `"11:22:33:44:55:66"`), "11:22:33:44:55:66"},
		"MAC address broadcast":           {check(attribute.MAC, `"FF:FF:FF:FF:FF:FF"`), "refused"},
		"MAC address zero":                {check(attribute.MAC, `"00:00:00:00:00:00"`), "refused"},
		"address with a zone":             {check(attribute.Address, `"fe80::1%eth0"`), "refused"},
		"address IPv4-mapped":             {check(attribute.Address, `"::ffff:192.0.2.1"`), "refused"},
		"CIDR with host bits":             {check(attribute.CIDR, `"192.0.2.7/24"`), "192.0.2.0/24"},
		"CIDR of every address":           {check(attribute.CIDR, `"0.0.0.0/0"`), "refused"},
		"one of":                          {check(attribute.OneOf("a", "b"), `"b"`), "b"},
		"one of, null":                    {check(attribute.OneOf("a", "b"), `null`), ""},
		"one of, null refused":            {check(attribute.NotEmpty(attribute.OneOf("a", "b")), `null`), "refused"},
		"one of, another":                 {check(attribute.OneOf("a", "b"), `"c"`), "refused"},
		"list":                            {check(attribute.List(attribute.Bool), `[true,"0"]`), "[true false]"},
		"list null":                       {check(attribute.List(attribute.Bool), `null`), "refused"},
		"list, null is the empty list":    {check(attribute.NullIsEmptyList(attribute.List(attribute.Bool)), `null`), "[]"},
		"IP version 5":                    {check(attribute.IPVersion, `5`), "refused"},
		"profile null":                    {check(attribute.Profile, `null`), fmt.Sprint(json.RawMessage(`{}`))},
		"profile with an infinite number": {check(attribute.Profile, `{"a":1e999999}`), "refused"},
		"tags sorted, no duplicates":      {check(attribute.Tags, `["b","a","b"]`), "[a b]"},
		"tag empty":                       {check(attribute.Tags, `[""]`), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("read the JSON value: got %s, want %s", tc.got, tc.want)
			}
		})
	}
}

func TestList_TooLongIsRefusedBeforeItsItemsAreRead(t *testing.T) {
	t.Parallel()
	for _, length := range []int{attribute.MaxItems, attribute.MaxItems + 1} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			t.Parallel()
			raw, read := "["+strings.TrimSuffix(strings.Repeat("true,", length), ",")+"]", 0
			_, err := attribute.List(func(item json.RawMessage) (bool, error) {
				read++
				return attribute.Bool(item)
			})([]byte(raw))
			if length <= attribute.MaxItems && (err != nil || read != length) {
				t.Errorf(
					"list of %d items: got %d items read and the error %v, want every item and no error",
					length, read, err,
				)
			}
			if length > attribute.MaxItems && (err == nil || read != 0) {
				t.Errorf(
					"list of %d items: got %d items read and the error %v, want no item and an error",
					length, read, err,
				)
			}
		})
	}
}

func TestFilters_CanonicalFormOrNoMatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		read        func(string) (string, error)
		value, want string
	}{
		"UUID in upper case":  {attribute.FilterUUID, "5A000000-0000-4000-8000-000000000001", "5a000000-0000-4000-8000-000000000001"},
		"MAC address":         {attribute.FilterMAC, "FA:16:3E:00:00:01", "fa:16:3e:00:00:01"},
		"IPv6 address":        {attribute.FilterIP, "2001:DB8:0::1", "2001:db8::1"},
		"no address":          {attribute.FilterIP, "", ""},
		"CIDR with host bits": {attribute.FilterCIDR, "192.0.2.7/24", "192.0.2.0/24"},
		"bool":                {attribute.FilterBool, "True", "true"},
		"int":                 {attribute.FilterInt, "007", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := tc.read(tc.value); err != nil || got != tc.want {
				t.Errorf("read the filter value: got %q, error %v; want %q", got, err, tc.want)
			}
		})
	}
	for name, read := range map[string]func(string) (string, error){
		"UUID":        attribute.FilterUUID,
		"MAC address": attribute.FilterMAC,
		"IP address":  attribute.FilterIP,
		"CIDR":        attribute.FilterCIDR,
	} {
		t.Run(name+" of another form matches nothing", func(t *testing.T) {
			t.Parallel()
			if _, err := read("x"); err != attribute.ErrNoMatch {
				t.Errorf("read the filter value x: got error %v, want ErrNoMatch", err)
			}
		})
	}
}
