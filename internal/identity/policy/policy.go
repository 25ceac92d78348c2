// Package policy decides which caller may do what: rules in the grammar of oslo.policy, with the defaults of the
// APIs and what an operator's file says instead. It knows no operation; each API brings the names and defaults of
// its own. A name is denied unless a rule allows it.
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

// Scope is what a token is for.
type Scope int

// The scopes that berth's operations tell apart. A token of a domain has neither.
const (
	Project Scope = iota + 1
	System
)

// Default is what holds for a name unless the operator's file says otherwise. A name may be that of an operation
// or one that other rules refer to.
type Default struct {
	Name  string
	Check string
	// Old is what older releases allowed. It is enough as well, unless only new defaults are to count or the
	// file has a rule for the name.
	Old string
	// Scopes are those of the tokens that may be used at all, whatever the rule; none means any.
	Scopes []Scope
}

// Options are the operator's word.
type Options struct {
	File string // YAML or JSON: names and rules; empty for none
	Old  bool   // what older releases allowed is still enough
}

// Policy judges callers. It reads its file again whenever that changes.
type Policy struct {
	options  Options
	defaults map[string]Default
	current  atomic.Pointer[edition]
	reading  sync.Mutex
}

// edition is the rules as of one state of the file.
type edition struct {
	rules map[string]Check
	file  os.FileInfo // nil if there is none
}

// Open reads defaults and file. A rule that cannot be read, that refers to a name which does not exist, or that is for
// a name which nobody asks for is an error: it would silently not protect what it was written for.
func Open(o Options, defaults ...Default) (*Policy, error) {
	p := &Policy{options: o, defaults: map[string]Default{}}
	for _, d := range defaults {
		if _, twice := p.defaults[d.Name]; twice {
			return nil, fmt.Errorf("policy: two defaults for %s", d.Name)
		}
		p.defaults[d.Name] = d
	}
	first, err := p.read()
	if err != nil {
		return nil, err
	}
	p.current.Store(first)
	return p, nil
}

// Allows tells whether the caller may do that to the target.
func (p *Policy) Allows(name string, c identity.Caller, target Target) bool {
	rules := p.edition().rules
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

// edition is what counts now. A file that can no longer be read or understood changes nothing: the rules
// before it stay in force, and the log says so.
func (p *Policy) edition() *edition {
	now := p.current.Load()
	if p.options.File == "" || !p.reading.TryLock() {
		return now
	}
	defer p.reading.Unlock()
	info, err := os.Stat(p.options.File)
	switch now = p.current.Load(); {
	case err != nil && now.file != nil:
		slog.Error("the policy file is gone; its rules stay in force", "error", err)
		p.current.Store(&edition{rules: now.rules})
	case err == nil && !unchanged(now.file, info):
		next, err := p.read()
		if err != nil {
			slog.Error("the policy file is not understood; the rules before it stay in force", "error", err)
			next = &edition{rules: now.rules, file: info}
		} else {
			slog.Info("the policy file was read again", "file", p.options.File)
		}
		p.current.Store(next)
	}
	return p.current.Load()
}

func unchanged(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// read makes an edition from defaults and file.
func (p *Policy) read() (*edition, error) {
	overrides, info, err := load(p.options.File)
	if err != nil {
		return nil, err
	}
	e := &edition{rules: map[string]Check{}, file: info}
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
			errs = append(errs, fmt.Errorf("default of %s: %w", name, err))
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
	return e, p.sound(e.rules, overrides)
}

// sound refuses names that lead nowhere: unknown ones, circles, and rules that nobody asks for.
func (p *Policy) sound(rules map[string]Check, overrides map[string]string) error {
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

// circular tells whether a rule can be reached from itself.
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
