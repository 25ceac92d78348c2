// Package policy decides which caller may do what. Package policy evaluates rules in the grammar of
// oslo.policy: the default rules of the APIs, and the rules of the operator's file, which replace default
// rules with the same name. Each API passes the names and default rules of its operations to package policy.
// If an operation has no rule, every caller is denied.
package policy

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"berth/internal/identity"
)

// Scope is the scope of a token.
type Scope int

// Scopes that berth's operations distinguish. A domain-scoped token has neither the scope Project nor the
// scope System.
const (
	Project Scope = iota + 1
	System
)

// Default is a rule that applies if the operator's file has no rule with the same name. The field Name is the
// name of an operation, or the name of a rule to which other rules refer.
type Default struct {
	Name  string
	Check string
	// Old is the default rule of older OpenStack releases. A caller whom the rule Old allows is
	// allowed too, unless Options.Old is false or the operator's file has a rule with this Name.
	Old string
	// Scopes are the allowed scopes of tokens, checked in addition to the rule; an empty list allows every
	// scope.
	Scopes []Scope
	// Guards says for readers what the rule decides, one text for each route or attribute. Guards is empty
	// for a rule that no API checks itself, because only other rules refer to it.
	Guards []string
	// Attributes are the attributes that the target of the operation can have. A rule that compares another
	// attribute is refused, because it would never allow what its author intends. If Attributes is nil, a
	// rule may compare any attribute.
	Attributes []string
}

// Options are the operator's settings.
type Options struct {
	File string // YAML or JSON with names and rules; empty for none
	Old  bool   // a caller whom the default rule of an older OpenStack release allows is allowed too
}

// Policy checks callers against rules. Policy reads the operator's file again whenever the file has changed.
type Policy struct {
	options  Options
	defaults map[string]Default
	order    []string // names of the defaults
	loaded   atomic.Pointer[Rules]
	reading  sync.Mutex
}

// Rules are the rules that apply while the operator's file has one particular content.
type Rules struct {
	rules  map[string]Check
	scopes map[string][]Scope
	texts  map[string]string // the rules of the file
	// the rules that the file changes, also by changing a rule to which they refer
	overridden map[string]bool
	file       os.FileInfo // nil without a file
}

// Open reads the defaults and the file. Open returns an error for a rule that cannot be parsed, that refers
// to an unknown name, that compares an attribute which the target does not have, or that has no effect
// because no API checks its name and no other rule refers to it.
func Open(o Options, defaults ...Default) (*Policy, error) {
	p := &Policy{options: o, defaults: map[string]Default{}}
	for _, d := range defaults {
		if _, twice := p.defaults[d.Name]; twice {
			return nil, fmt.Errorf("policy: %s has two default rules", d.Name)
		}
		p.defaults[d.Name], p.order = d, append(p.order, d.Name)
	}
	first, err := p.read()
	if err != nil {
		return nil, err
	}
	p.loaded.Store(first)
	return p, nil
}

// MustOpen opens the defaults without a file. MustOpen panics if a default is invalid, because this is an
// error of the program.
func MustOpen(defaults ...Default) *Policy {
	p, err := Open(Options{}, defaults...)
	if err != nil {
		panic(err)
	}
	return p
}

// Allows reports whether the caller may perform the operation on the target.
func (p *Policy) Allows(name string, c identity.Caller, target Target) bool {
	return p.current().Decide(name, c, target) == Allowed
}

// Rules returns the rules of the current file. A request that checks several rules gets them once with this
// method, so that a change of the file does not change the rules in the middle of the request.
func (p *Policy) Rules() *Rules { return p.current() }

// Decide returns Allowed or Denied: whether the caller may perform the operation on the target. A condition
// on an attribute that the target lacks is false.
func (r *Rules) Decide(name string, c identity.Caller, target Target) Decision {
	return r.decide(name, question{rules: r.rules, caller: c, target: target})
}

// DecideEarly decides before all attributes of the target are known: the attributes that the target lacks are
// unknown. DecideEarly returns Depends if the result depends on them.
func (r *Rules) DecideEarly(name string, c identity.Caller, target Target) Decision {
	return r.decide(name, question{
		rules:  r.rules,
		caller: c,
		target: target,
		open:   true,
	})
}

func (r *Rules) decide(name string, q question) Decision {
	check, ok := r.rules[name]
	if scopes := r.scopes[name]; !ok || len(scopes) > 0 && !slices.Contains(scopes, scope(q.caller)) {
		return Denied
	}
	return check.decide(q)
}

// Overridden reports whether the operator's file changes the rule or a rule to which it refers.
func (r *Rules) Overridden(name string) bool { return r.overridden[name] }

// Entry is a rule with its default and its present value.
type Entry struct {
	Default
	Present  string // the rule in force
	FromFile bool   // the operator's file has a rule of this name
	// OnlyInFile says that the rule has no default.
	OnlyInFile bool
}

// Entries returns all rules: the default rules in their order, then the rules that only the operator's file
// defines.
func (p *Policy) Entries() []Entry {
	now := p.current()
	entries := make([]Entry, len(p.order))
	for i, name := range p.order {
		_, fromFile := now.texts[name]
		entries[i] = Entry{Default: p.defaults[name], Present: now.rules[name].String(), FromFile: fromFile}
	}
	for _, name := range slices.Sorted(maps.Keys(now.texts)) {
		if _, known := p.defaults[name]; !known {
			entries = append(entries, Entry{
				Default:    Default{Name: name},
				Present:    now.rules[name].String(),
				FromFile:   true,
				OnlyInFile: true,
			})
		}
	}
	return entries
}

func scope(c identity.Caller) Scope {
	switch {
	case c.System:
		return System
	case c.Project != "":
		return Project
	default:
		return 0
	}
}

// current returns the rules of the current file. If the file is missing, or has changed and is invalid,
// current logs an error and returns the rules that it has read before.
func (p *Policy) current() *Rules {
	now := p.loaded.Load()
	if p.options.File == "" || !p.reading.TryLock() {
		return now
	}
	defer p.reading.Unlock()
	info, err := os.Stat(p.options.File)
	switch now = p.loaded.Load(); {
	case err != nil && now.file != nil:
		slog.Error("Policy file is missing; its last rules stay in force", "error", err)
		next := *now
		next.file = nil
		p.loaded.Store(&next)
	case err == nil && !unchanged(now.file, info):
		next, err := p.read()
		if err != nil {
			slog.Error("Policy file is invalid; the previous rules stay in force", "error", err)
			kept := *now
			kept.file = info
			next = &kept
		} else {
			slog.Info("Policy file reloaded", "file", p.options.File)
		}
		p.loaded.Store(next)
	}
	return p.loaded.Load()
}

func unchanged(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// read builds the rules from the defaults and the file.
func (p *Policy) read() (*Rules, error) {
	file, err := load(p.options.File)
	if err != nil {
		return nil, err
	}
	overrides := file.rules
	e := &Rules{
		rules:      map[string]Check{},
		scopes:     map[string][]Scope{},
		texts:      overrides,
		overridden: map[string]bool{},
		file:       file.info,
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.defaults)) {
		e.scopes[name] = p.defaults[name].Scopes
		if _, overridden := overrides[name]; overridden {
			continue
		}
		d := p.defaults[name]
		check, err := Parse(d.Check)
		if p.options.Old && d.Old != "" && err == nil {
			var old Check
			old, err = Parse(d.Old)
			check = oneOf{check, old}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("parse the default rule of %s: %w", name, err))
		}
		e.rules[name] = check
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if e.rules[name], err = Parse(overrides[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.place(name), err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := p.validate(e.rules, file); err != nil {
		return nil, err
	}
	for name := range e.rules {
		e.overridden[name] = slices.ContainsFunc(reachable(e.rules, name),
			func(other string) bool { return hasKey(overrides, other) })
	}
	return e, p.checkAttributes(e.rules, file)
}

// validate refuses references to unknown rules, circular references, and rules of the file that no API checks
// and to which no other rule refers.
func (p *Policy) validate(rules map[string]Check, file ruleFile) error {
	used := map[string]bool{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		for _, other := range referredRules(rules[name]) {
			if used[other] = true; rules[other] == nil {
				errs = append(errs,
					fmt.Errorf("%s refers to rule:%s, which does not exist", file.place(name), other))
			}
		}
		if circular(rules, name) {
			errs = append(errs, fmt.Errorf("%s refers to itself", file.place(name)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.rules)) {
		if _, known := p.defaults[name]; !known && !used[name] {
			errs = append(
				errs,
				fmt.Errorf("%s: no operation has this name, and no rule refers to it", file.place(name)),
			)
		}
	}
	return errors.Join(errs...)
}

// circular reports whether a rule refers to itself, directly or through other rules.
func circular(rules map[string]Check, name string) bool {
	return slices.ContainsFunc(reachable(rules, name),
		func(other string) bool { return slices.Contains(referredRules(rules[other]), name) })
}

// reachable returns the name of the rule and the names of all existing rules to which it refers, directly or
// through other rules.
func reachable(rules map[string]Check, name string) []string {
	names := []string{name}
	for i := 0; i < len(names); i++ {
		for _, other := range referredRules(rules[names[i]]) {
			if rules[other] != nil && !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	return names
}

// checkAttributes refuses rules that compare an attribute which the target of the operation does not have.
func (p *Policy) checkAttributes(rules map[string]Check, file ruleFile) error {
	var errs []error
	for _, name := range p.order {
		known := p.defaults[name].Attributes
		if known == nil {
			continue
		}
		for _, other := range reachable(rules, name) {
			for _, names := range comparedAttributes(rules[other]) {
				if !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(known, n) }) {
					errs = append(
						errs,
						fmt.Errorf("%s: rule:%s compares the attribute %s, but the target of %s has only %s",
							file.place(name), other, names[0], name, strings.Join(known, ", ")),
					)
				}
			}
		}
	}
	return errors.Join(errs...)
}

func hasKey(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}
