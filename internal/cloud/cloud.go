// Package cloud applies reservations to Nova and Neutron: aggregates, flavors, server groups and servers,
// floating IPs and networks. Every method may be repeated, because each method finds the objects of a
// reservation by the reservation's ID and changes only objects that differ from the reservation.
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

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/aggregates"

	"berth/internal/coalesce"
	"berth/internal/lease"
	"berth/internal/safeurl"
)

// ErrServersRemain and ErrInUse are temporary: the same call can succeed later. Callers also repeat a call
// after other errors.
var (
	// ErrServersRemain means that Nova has not deleted all servers yet.
	ErrServersRemain = errors.New("servers are not deleted yet")
	// ErrInUse means that a host is in the aggregate of another reservation, or that a floating IP belongs to
	// another owner.
	ErrInUse = errors.New("in use by another owner")
)

// Config holds the endpoints of Nova and Neutron and the credentials.
type Config struct {
	Nova    string // the compute endpoint; empty: Nova is not used
	Neutron string // the endpoint without a version; empty: Neutron is not used
	Token   string
	// RefreshToken, if set, returns the token, and the field Token is not used. The argument `rejected` is
	// the token that Nova or Neutron has just rejected, or "".
	RefreshToken func(ctx context.Context, rejected string) (string, error)
	Timeout      time.Duration // timeout of one request; 0: ten seconds
	// Wrap, if set, adds measurements to the transport of the client.
	Wrap func(http.RoundTripper) http.RoundTripper
}

const (
	defaultTimeout = 10 * time.Second
	// shareDelay is how long the first request for the list of aggregates waits for other requests for this
	// list, so that all these requests share one answer of Nova.
	shareDelay = time.Millisecond
	// freepool is the aggregate of the hosts that can be reserved and belong to no reservation.
	freepool = "freepool"
	// owner is the metadata key under which a reservation's aggregate stores the project of the reservation.
	owner = "blazar:owner"
)

// Cloud applies reservations to Nova and Neutron. A Cloud is safe for concurrent use.
type Cloud struct {
	nova, neutron *gophercloud.ServiceClient // nil: not used
	hosts         hosts
	resources     map[string]resource
	consumers     consumersFunc // nil: not known
	reread        rereadFunc    // nil: a reservation does not change
}

// consumersFunc returns the UUIDs of the consumers in Placement that have allocations of the resource class
// of a reservation of instances.
type consumersFunc func(ctx context.Context, reservation uuid.UUID) ([]string, error)

// ReadConsumers sets the function with which Deprovision finds the servers of a reservation of instances that
// no longer have the reservation's flavor. ReadConsumers must be called before the other methods of Cloud. It
// does nothing if neither Nova nor Neutron is used.
func (c *Cloud) ReadConsumers(read consumersFunc) {
	if c != nil {
		c.consumers = read
	}
}

// rereadFunc reads again what can have changed since a reservation was read: its revision if it is one of
// hosts or instances, and what berth has begun to create in Neutron for it and for other reservations.
type rereadFunc func(ctx context.Context, c lease.CloudReservation) (lease.CloudReservation, error)

// Reread sets the function with which Cloud reads a reservation again before it takes objects for those of
// the reservation. Reread must be called before the other methods of Cloud. It does nothing if neither Nova
// nor Neutron is used.
//
// Two attempts to provision or remove the same reservation can run at the same time: the process of one was
// paused, and Temporal has begun the other one meanwhile. When the first one continues, the reservation may
// have ended, and the next reservations may have its hosts, addresses and segments. No service makes a
// request depend on that. So Cloud first lists the objects that it deletes, then checks that the reservation
// still has what it had, and then deletes the listed objects by their IDs: what was listed before the check
// belongs to no later reservation.
func (c *Cloud) Reread(read rereadFunc) {
	if c != nil {
		c.reread = read
	}
}

// readAgain returns the reservation as it is now.
func (c *Cloud) readAgain(ctx context.Context, claim lease.CloudReservation) (lease.CloudReservation, error) {
	if c.reread == nil {
		return claim, nil
	}
	return c.reread(ctx, claim)
}

// errLateAttempt means that another attempt has changed the reservation, or its objects in Nova, since this
// attempt has read them.
var errLateAttempt = errors.New("another attempt has changed the reservation meanwhile")

// checkRevision returns errLateAttempt if the reservation has changed since it was read. The caller has
// listed the aggregates before: a host in the reservation's aggregate that is not one of the claim is then
// one that the reservation had before, and none that healing has given to it since.
func (c *Cloud) checkRevision(ctx context.Context, claim lease.CloudReservation) error {
	now, err := c.readAgain(ctx, claim)
	if err == nil && now.Revision != claim.Revision {
		err = fmt.Errorf("%w: it had the revision %d, and has %d", errLateAttempt, claim.Revision, now.Revision)
	}
	return err
}

// resource applies the reservations of one type.
type resource interface {
	// apply creates or changes the objects of the reservation in Nova or Neutron.
	apply(ctx context.Context, c lease.CloudReservation) (lease.CloudIDs, error)
	// remove deletes all objects of the reservation in Nova or Neutron. While Nova still has servers of the
	// reservation, remove returns ErrServersRemain.
	remove(ctx context.Context, c lease.CloudReservation) error
	// beforeEnd runs the action that the reservation defines for its before_end event.
	beforeEnd(ctx context.Context, c lease.CloudReservation) error
}

// maxAnswer is the largest answer of Nova or Neutron, in bytes. Their lists of thousands of objects have a
// few MiB.
const maxAnswer = 32 << 20

// New checks the configuration and returns a Cloud. New does not connect to Nova or Neutron.
func New(c Config) (*Cloud, error) {
	cloud := &Cloud{resources: map[string]resource{}}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	provider := &gophercloud.ProviderClient{HTTPClient: *safeurl.Client(c.Timeout, c.Wrap, maxAnswer)}
	provider.UserAgent.Prepend("berth")
	provider.UseTokenLock()
	provider.SetToken(c.Token)
	if c.RefreshToken != nil {
		provider.ReauthFunc = func(ctx context.Context) error {
			token, err := c.RefreshToken(ctx, provider.TokenID)
			if err == nil {
				provider.TokenID = token // gophercloud holds the provider's lock during this call
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
	var servers *nova
	if cloud.nova != nil {
		n := nova{
			cloud.nova,
			coalesce.NewGroup[map[string]aggregates.Aggregate](shareDelay),
			coalesce.NewGroup[aggregates.Aggregate](shareDelay),
		}
		servers = &n
		cloud.hosts = hosts{n, cloud}
		cloud.resources[lease.PhysicalHost] = cloud.hosts
		cloud.resources[lease.VirtualInstance] = instances{n, cloud}
		cloud.resources[lease.FlavorInstance] = instances{n, cloud}
	}
	if cloud.neutron != nil {
		cloud.resources[lease.FloatingIP] = addresses{cloud.neutron, cloud}
		cloud.resources[lease.NetworkSegment] = networkSegments{cloud.neutron, servers, cloud}
	}
	return cloud, nil
}

// client returns a client of Nova or Neutron, or nil if the address is empty.
func client(
	p *gophercloud.ProviderClient,
	name, address, typ, version string,
) (*gophercloud.ServiceClient, error) {
	if address == "" {
		return nil, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, fmt.Errorf("the %s URL is not of the form http://host:port/path", name)
	}
	endpoint := strings.TrimRight(address, "/") + "/"
	return &gophercloud.ServiceClient{
		ProviderClient: p,
		Endpoint:       endpoint,
		ResourceBase:   endpoint + version,
		Type:           typ,
	}, nil
}

// Supports reports whether Cloud applies reservations of the given type to Nova or Neutron.
func (c *Cloud) Supports(typ string) bool { return c != nil && c.resources[typ] != nil }

// ResourceTypes returns the types of the reservations that Cloud applies to Nova or Neutron.
func (c *Cloud) ResourceTypes() []string { return slices.Sorted(maps.Keys(c.resources)) }

// Provision creates or changes the objects of a reservation in Nova or Neutron, and returns the IDs of these
// objects. If Provision fails, the caller can delete the objects that Provision has created by calling
// Deprovision.
func (c *Cloud) Provision(ctx context.Context, claim lease.CloudReservation) (lease.CloudIDs, error) {
	mark := lease.CloudIDs{Revision: claim.Revision}
	if !c.Supports(claim.Type) {
		return mark, nil
	}
	mark, err := c.resources[claim.Type].apply(ctx, claim)
	mark.Revision = claim.Revision
	return mark, withClaim("provision", claim, err)
}

// CheckFree checks that Neutron has no object of another owner where berth has not begun to create one for a
// reservation: a floating IP with one of its addresses, or a network on its segment. Otherwise CheckFree
// returns ErrInUse.
func (c *Cloud) CheckFree(ctx context.Context, claim lease.CloudReservation) (err error) {
	switch {
	case !c.Supports(claim.Type):
	case claim.Type == lease.FloatingIP:
		err = addresses{c.neutron, c}.checkAddresses(ctx, claim, claim.NotCreated())
	case claim.NeedsNetwork():
		err = networkSegments{client: c.neutron}.checkSegment(ctx, claim)
	}
	return withClaim("provision", claim, err)
}

// Deprovision deletes all objects of a reservation in Nova or Neutron. Deprovision also deletes the servers
// of the reservation, and returns ErrServersRemain until Nova has deleted them. If only servers on former
// hosts are left, the error also is lease.ErrFormerHosts.
func (c *Cloud) Deprovision(ctx context.Context, claim lease.CloudReservation) error {
	if !c.Supports(claim.Type) {
		return nil
	}
	return withClaim("deprovision", claim, c.resources[claim.Type].remove(ctx, claim))
}

// BeforeEnd runs the action that a reservation defines for its before_end event. Calls for the same due time
// of the event run the action once.
func (c *Cloud) BeforeEnd(ctx context.Context, claim lease.CloudReservation) error {
	if !c.Supports(claim.Type) {
		return nil
	}
	return withClaim("prepare the end of", claim, c.resources[claim.Type].beforeEnd(ctx, claim))
}

// withClaim adds to an error the reservation that the call was for, and which party failed with which call.
// An error that names its party already keeps it.
func withClaim(what string, claim lease.CloudReservation, err error) error {
	if err == nil {
		return nil
	}
	party := lease.PartyNova
	if claim.Type == lease.FloatingIP || claim.Type == lease.NetworkSegment {
		party = lease.PartyNeutron
	}
	var named *lease.CallError
	if errors.As(err, &named) {
		party = named.Party
	}
	return callError(party, fmt.Errorf("%s reservation %s: %w", what, claim.ID, err))
}

// ignoreNotFound ignores the error that the object to delete does not exist.
func ignoreNotFound(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// ignoreConflict ignores the error that the object to create exists already.
func ignoreConflict(err error) error {
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return nil
	}
	return err
}
