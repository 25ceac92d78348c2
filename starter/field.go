package main

import (
	"context"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// field is an attribute that a flag sets.
type field struct {
	flag, key, help string
	as              convert
	only            string // "create" or "set" if the other verb does not have it
	many            bool   // may be given several times
}

// convert makes the attribute's value of a flag's words.
type convert func(ctx context.Context, s *session, words []string) (any, error)

func text(_ context.Context, _ *session, words []string) (any, error) { return words[0], nil }

// nullable is text of which the word "none" means that there is none.
func nullable(_ context.Context, _ *session, words []string) (any, error) {
	if words[0] == "none" {
		return nil, nil
	}
	return words[0], nil
}

func number(_ context.Context, _ *session, words []string) (any, error) {
	n, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return nil, usage("%q is not a whole number", words[0])
	}
	return n, nil
}

func yesno(_ context.Context, _ *session, words []string) (any, error) {
	b, err := strconv.ParseBool(words[0])
	if err != nil {
		return nil, usage("%q is neither true nor false", words[0])
	}
	return b, nil
}

// literal is JSON that goes to the API as it is.
func literal(_ context.Context, _ *session, words []string) (any, error) {
	var v any
	if err := decode([]byte(words[0]), &v); err != nil {
		return nil, usage("%q is not JSON: %s", words[0], err)
	}
	return v, nil
}

func list(_ context.Context, _ *session, words []string) (any, error) {
	all := []string{}
	for _, word := range words {
		for item := range strings.SplitSeq(word, ",") {
			if item != "" {
				all = append(all, item)
			}
		}
	}
	return all, nil
}

// ref is the name or ID of another object.
func ref(n *noun) convert {
	return func(ctx context.Context, s *session, words []string) (any, error) {
		return n.resolve(ctx, s, words[0])
	}
}

// pools reads START-END ranges.
func pools(_ context.Context, _ *session, words []string) (any, error) {
	all := []object{}
	for _, word := range words {
		start, end, ok := strings.Cut(word, "-")
		if !ok {
			return nil, usage("pool %q is not START-END", word)
		}
		all = append(all, object{"start": start, "end": end})
	}
	return all, nil
}

// fixedIPs reads subnet=NAME,address=IP; either half may be missing. "none" asks for no address.
func fixedIPs(ctx context.Context, s *session, words []string) (any, error) {
	all := []object{}
	for _, word := range words {
		if word == "none" {
			continue
		}
		parts, err := pairs(strings.Split(word, ","))
		if err != nil {
			return nil, usage("fixed IP %q is not subnet=NAME,address=IP", word)
		}
		ip := object{}
		for name, value := range parts {
			switch name {
			case "subnet":
				if ip["subnet_id"], err = subnets.resolve(ctx, s, value); err != nil {
					return nil, err
				}
			case "address":
				ip["ip_address"] = value
			default:
				return nil, usage("fixed IP %q knows subnet and address, not %q", word, name)
			}
		}
		all = append(all, ip)
	}
	return all, nil
}

// version is the IP version of a CIDR.
func version(cidr string) int {
	if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is6() {
		return 6
	}
	return 4
}

// declare adds the flags of fields for one verb and returns what makes a body of those that were given.
func declare(f *pflag.FlagSet, fields []field, verb string) func(ctx context.Context, s *session) (object, error) {
	values := make([]func() []string, len(fields))
	for i, fl := range fields {
		if fl.only != "" && fl.only != verb {
			continue
		}
		if fl.many {
			v := f.StringArray(fl.flag, nil, fl.help)
			values[i] = func() []string { return *v }
			continue
		}
		v := f.String(fl.flag, "", fl.help)
		values[i] = func() []string { return []string{*v} }
	}
	return func(ctx context.Context, s *session) (object, error) {
		body := object{}
		for i, fl := range fields {
			if values[i] == nil || !f.Changed(fl.flag) {
				continue
			}
			v, err := fl.as(ctx, s, values[i]())
			if err != nil {
				return nil, err
			}
			body[fl.key] = v
		}
		return body, nil
	}
}

// integer reads a number of a decoded answer; absent is -1.
func integer(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return -1
	}
	i, err := n.Int64()
	if err != nil {
		return -1
	}
	return i
}
