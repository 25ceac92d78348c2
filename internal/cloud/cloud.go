// Package cloud is what reservations are outside of berth: Nova's aggregates, flavors, server groups and servers, and
// Neutron's floating IPs. Every method may be repeated: what a reservation has there is found again by its ID, and
// what is there already is left alone.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"

	"berth/internal/lease"
)

// Errors that time mends. Any other error is worth another try too.
var (
	// ErrBusy means that servers are still there that have been asked to go.
	ErrServersRemain = errors.New("servers are still there")
	// ErrTaken means that somebody else has a host or an address in the cloud.
	ErrInUse = errors.New("somebody else has it")
)

// Config is how the cloud is reached.
type Config struct {
	Nova    string // its compute endpoint; empty if it is told nothing
	Neutron string // its endpoint without a version; empty if it is told nothing
	Token   string
	// Fresh, if set, gives the token instead of Token. It is given the one that was just rejected, if any.
	RefreshToken func(ctx context.Context, rejected string) (string, error)
	Timeout      time.Duration // of one request; 0 means ten seconds
}

const (
	defaultTimeout = 10 * time.Second
	// freepool is the aggregate of the hosts that can be reserved and are nobody's.
	freepool = "freepool"
	// owner is the aggregates' metadata that names the project of a reservation.
	owner = "blazar:owner"
)

// Cloud tells Nova and Neutron about reservations. It is safe for concurrent use.
type Cloud struct {
	nova, neutron *gophercloud.ServiceClient // nil where nobody is told
	hosts         hosts
	kinds         map[string]kind
}

// kind is what one type of resource is in the cloud: the part of the plug-in that belongs to lease.Resource with the
// same type.
type kind interface {
	// provide makes the cloud match the claim.
	provide(ctx context.Context, c lease.Claim) (lease.Mark, error)
	// withdraw leaves nothing of the claim; ErrBusy while servers are still going.
	withdraw(ctx context.Context, c lease.Claim) error
	// beforeEnd does what the reservation asked for shortly before its end.
	beforeEnd(ctx context.Context, c lease.Claim) error
}

// New checks the configuration. It does not connect.
func New(c Config) (*Cloud, error) {
	cloud := &Cloud{kinds: map[string]kind{}}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	provider := &gophercloud.ProviderClient{HTTPClient: http.Client{
		Timeout:       c.Timeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 20 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	provider.UserAgent.Prepend("berth")
	provider.UseTokenLock()
	provider.SetToken(c.Token)
	if c.RefreshToken != nil {
		provider.ReauthFunc = func(ctx context.Context) error {
			token, err := c.RefreshToken(ctx, provider.TokenID)
			if err == nil {
				provider.TokenID = token // under the provider's own lock
			}
			return err
		}
	}
	var err error
	if cloud.nova, err = client(provider, "Nova", c.Nova, "compute", ""); err != nil {
		return nil, err
	}
	if cloud.neutron, err = client(provider, "Neutron", c.Neutron, "network", "v2.0/"); err != nil {
		return nil, err
	}
	if cloud.nova != nil {
		n := nova{cloud.nova, &shared[map[string]aggregates.Aggregate]{}, &shared[aggregates.Aggregate]{}}
		cloud.hosts = hosts{n}
		cloud.kinds[lease.PhysicalHost] = cloud.hosts
		cloud.kinds[lease.VirtualInstance] = instances{n}
		cloud.kinds[lease.FlavorInstance] = instances{n}
	}
	if cloud.neutron != nil {
		cloud.kinds[lease.FloatingIP] = addresses{cloud.neutron}
	}
	return cloud, nil
}

// client is a client of one service, nil without an address.
func client(p *gophercloud.ProviderClient, name, address, typ, version string) (*gophercloud.ServiceClient, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the %s URL is not of the form http://host:port/path", name)
	}
	endpoint := strings.TrimRight(address, "/") + "/"
	return &gophercloud.ServiceClient{ProviderClient: p, Endpoint: endpoint, ResourceBase: endpoint + version, Type: typ}, nil
}

// Knows tells whether the cloud is told about reservations of that type.
func (c *Cloud) Supports(typ string) bool { return c != nil && c.kinds[typ] != nil }

// Types are those of which the cloud is told.
func (c *Cloud) ResourceTypes() []string { return slices.Sorted(maps.Keys(c.kinds)) }

// Provide makes the cloud match a claim and tells what it is called there. What was done when it fails is taken back by
// Withdraw.
func (c *Cloud) Provision(ctx context.Context, claim lease.Claim) (lease.Mark, error) {
	mark := lease.Mark{Shape: claim.Shape}
	if !c.Supports(claim.Type) {
		return mark, nil
	}
	mark, err := c.kinds[claim.Type].provide(ctx, claim)
	mark.Shape = claim.Shape
	return mark, explain("provide", claim, err)
}

// Withdraw leaves nothing of a claim in the cloud. It asks servers to go, and fails while they are there.
func (c *Cloud) Deprovision(ctx context.Context, claim lease.Claim) error {
	if !c.Supports(claim.Type) {
		return nil
	}
	return explain("withdraw", claim, c.kinds[claim.Type].withdraw(ctx, claim))
}

// BeforeEnd does what a reservation asked for shortly before its end. Repeated, it is done again.
func (c *Cloud) BeforeEnd(ctx context.Context, claim lease.Claim) error {
	if !c.Supports(claim.Type) {
		return nil
	}
	return explain("prepare the end of", claim, c.kinds[claim.Type].beforeEnd(ctx, claim))
}

func explain(what string, claim lease.Claim, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s reservation %s: %w", what, claim.ID, err)
}

// gone forgives that what shall go is not there.
func gone(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// there forgives that what shall be is there already.
func there(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return nil
	}
	return err
}
