// Package policy decides which caller may do what. Package policy evaluates rules in the grammar of oslo.policy: the default rules of the
// APIs, and the rules of the operator's file, which replace default rules with the same name. Each API passes the names and default rules
// of its operations to package policy. If an operation has no rule, every caller is denied.
package policy

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"berth/internal/identity"
)

// Scope is the scope of a token.
type Scope int

// Scopes that berth's operations distinguish. A domain-scoped token has neither the scope Project nor the scope System.
const (
	Project Scope = iota + 1
	System
)

// Default is a rule that applies if the operator's file has no rule with the same name. The field Name is the name of an operation, or the
// name of a rule to which other rules refer.
type Default struct {
	Name  string
	Check string
	// Old is the default rule of older OpenStack releases. A caller whom the rule Old allows is
	// allowed too, unless Options.Old is false or the operator's file has a rule with this Name.
	Old string
	// Scopes are the allowed scopes of tokens, checked in addition to the rule; an empty list allows every scope.
	Scopes []Scope
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
	loaded   atomic.Pointer[ruleSet]
	reading  sync.Mutex
}

// ruleSet contains the rules that apply while the operator's file has one particular content.
type ruleSet struct {
	rules map[string]Check
	file  os.FileInfo // nil without a file
}

// Open reads the defaults and the file. Open returns an error for a rule that cannot be parsed, that refers to an unknown name, or that has
// no effect because no API checks its name and no other rule refers to it.
func Open(o Options, defaults ...Default) (*Policy, error) {
	p := &Policy{options: o, defaults: map[string]Default{}}
	for _, d := range defaults {
		if _, twice := p.defaults[d.Name]; twice {
			return nil, fmt.Errorf("policy: %s has two default rules", d.Name)
		}
		p.defaults[d.Name] = d
	}
	first, err := p.read()
	if err != nil {
		return nil, err
	}
	p.loaded.Store(first)
	return p, nil
}

// Allows reports whether the caller may perform the operation on the target.
func (p *Policy) Allows(name string, c identity.Caller, target Target) bool {
	rules := p.current().rules
	if scopes := p.defaults[name].Scopes; rules[name] == nil || len(scopes) > 0 && !slices.Contains(scopes, scope(c)) {
		return false
	}
	return rules[name].holds(question{rules: rules, caller: c, target: target})
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

// current returns the rules of the current file. If the file is missing, or has changed and is invalid, current logs an error and returns
// the rules that it has read before.
func (p *Policy) current() *ruleSet {
	now := p.loaded.Load()
	if p.options.File == "" || !p.reading.TryLock() {
		return now
	}
	defer p.reading.Unlock()
	info, err := os.Stat(p.options.File)
	switch now = p.loaded.Load(); {
	case err != nil && now.file != nil:
		slog.Error("Policy file is missing; its last rules stay in force", "error", err)
		p.loaded.Store(&ruleSet{rules: now.rules})
	case err == nil && !unchanged(now.file, info):
		next, err := p.read()
		if err != nil {
			slog.Error("Policy file is invalid; the previous rules stay in force", "error", err)
			next = &ruleSet{rules: now.rules, file: info}
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
func (p *Policy) read() (*ruleSet, error) {
	overrides, info, err := load(p.options.File)
	if err != nil {
		return nil, err
	}
	e := &ruleSet{rules: map[string]Check{}, file: info}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.defaults)) {
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
			errs = append(errs, fmt.Errorf("%s: %s: %w", p.options.File, name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return e, p.validate(e.rules, overrides)
}

// validate refuses references to unknown rules, circular references, and rules of the file that no API checks and to which no other rule
// refers.
func (p *Policy) validate(rules map[string]Check, overrides map[string]string) error {
	used := map[string]bool{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		for _, other := range rules[name].refers() {
			if used[other] = true; rules[other] == nil {
				errs = append(errs, fmt.Errorf("policy: %s refers to rule:%s, which does not exist", name, other))
			}
		}
		if circular(rules, name) {
			errs = append(errs, fmt.Errorf("policy: %s refers to itself", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if _, known := p.defaults[name]; !known && !used[name] {
			errs = append(errs, fmt.Errorf("%s: %s: no operation has this name, and no rule refers to it", p.options.File, name))
		}
	}
	return errors.Join(errs...)
}

// circular reports whether a rule refers to itself, directly or through other rules.
func circular(rules map[string]Check, name string) bool {
	seen, next := map[string]bool{}, rules[name].refers()
	for len(next) > 0 {
		other := next[len(next)-1]
		next = next[:len(next)-1]
		if other == name {
			return true
		}
		if !seen[other] && rules[other] != nil {
			seen[other] = true
			next = append(next, rules[other].refers()...)
		}
	}
	return false
}
