package resource

import (
	"context"
	"net/netip"
	"strings"

	"berth/starter/cli"
)

// Subnets is the cli.Resource for Neutron's subnets.
var Subnets = &cli.Resource{
	Name:        "subnet",
	Path:        "/networking/v2.0/subnets",
	SingularKey: "subnet",
	PluralKey:   "subnets",
	IDKey:       "id",
	NameKey:     "name",
	NameFilter:  "name",
	IsID:        cli.IsUUID,
	Columns:     []string{"id", "name", "network_id", "cidr", "gateway_ip", "enable_dhcp"},
	Fields: []cli.Field{
		{
			Flag:    "name",
			Key:     "name",
			Help:    "new name",
			Parse:   cli.Text,
			OnlyFor: "set",
		},
		{
			Flag:    "network",
			Key:     "network_id",
			Help:    "network, by name or ID",
			Parse:   cli.Reference(Networks),
			OnlyFor: "create",
		},
		{
			Flag:    "cidr",
			Key:     "cidr",
			Help:    "address range, for example 10.0.0.0/24",
			Parse:   cli.Text,
			OnlyFor: "create",
		},
		{
			Flag:  "gateway",
			Key:   "gateway_ip",
			Help:  "address of the gateway, or none",
			Parse: cli.TextOrNone,
		},
		{
			Flag:  "dhcp",
			Key:   "enable_dhcp",
			Help:  "true or false",
			Parse: cli.Boolean,
		},
		{
			Flag:       "dns",
			Key:        "dns_nameservers",
			Help:       "name servers, separated by commas",
			Parse:      cli.CommaList,
			Repeatable: true,
		},
		{
			Flag:       "pool",
			Key:        "allocation_pools",
			Help:       "allocation pool, as the first and last address START-END; may be repeated",
			Parse:      parsePools,
			Repeatable: true,
		},
		{
			Flag:  "description",
			Key:   "description",
			Help:  "free text",
			Parse: cli.Text,
		},
		{
			Flag:    "project",
			Key:     "project_id",
			Help:    "project that owns the subnet; only administrators may set it",
			Parse:   cli.Text,
			OnlyFor: "create",
		},
	},
}

// prepareSubnet checks the required flags and derives the IP version from the CIDR.
func prepareSubnet(body cli.Object) error {
	if err := requireAttribute("network_id", "--network")(body); err != nil {
		return err
	}
	cidr, ok := body["cidr"].(string)
	if !ok {
		return cli.UsageError("--cidr is missing")
	}
	body["ip_version"] = ipVersion(cidr)
	return nil
}

// parsePools parses ranges of addresses of the form START-END.
func parsePools(_ context.Context, _ *cli.Session, words []string) (any, error) {
	all := []cli.Object{}
	for _, word := range words {
		start, end, ok := strings.Cut(word, "-")
		if !ok {
			return nil, cli.UsageError("pool %q is not START-END", word)
		}
		all = append(all, cli.Object{"start": start, "end": end})
	}
	return all, nil
}

// ipVersion returns the IP version of a CIDR, 4 or 6.
func ipVersion(cidr string) int {
	if p, err := netip.ParsePrefix(cidr); err == nil && p.Addr().Is6() {
		return 6
	}
	return 4
}
