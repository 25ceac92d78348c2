package server

import (
	"fmt"

	"berth/internal/api/blazar"
	"berth/internal/api/neutron"
	"berth/internal/api/placement"
	"berth/internal/config"
	"berth/internal/identity/policy"
)

// Policies are the access rules of each API that decides with rules.
type Policies struct {
	Placement, Networking, Reservation *policy.Policy
}

// OpenPolicies returns the access rules of each API: the default rules, which the operator's policy file of
// the API may override.
func OpenPolicies(cfg config.Config) (p Policies, err error) {
	if p.Placement, err = OpenPolicy(cfg); err != nil {
		return p, err
	}
	if p.Networking, err = openPolicy("BERTH_NETWORKING_POLICY_FILE", policy.Options{File: cfg.Policy.NetworkingFile}, neutron.Policy); err != nil {
		return p, err
	}
	p.Reservation, err = openPolicy("BERTH_RESERVATION_POLICY_FILE",
		policy.Options{File: cfg.Policy.ReservationFile}, blazar.Policy)
	return p, err
}

// OpenPolicy returns the access rules of the Placement API.
func OpenPolicy(cfg config.Config) (*policy.Policy, error) {
	return openPolicy("BERTH_POLICY_FILE",
		policy.Options{File: cfg.Policy.File, Old: !cfg.Policy.EnforceNewDefaults}, placement.Policy)
}

func openPolicy(setting string, o policy.Options, defaults []policy.Default) (*policy.Policy, error) {
	p, err := policy.Open(o, defaults...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return p, nil
}

// byAPI returns the rules by the name of the API, as in the path of the API's routes.
func (p Policies) byAPI() map[string]*policy.Policy {
	return map[string]*policy.Policy{
		"placement":   p.Placement,
		"networking":  p.Networking,
		"reservation": p.Reservation,
	}
}
