package resource

import (
	"context"
	"strings"

	"berth/starter/cli"
)

// Ports is the cli.Resource for Neutron's ports.
var Ports = &cli.Resource{
	Name:        "port",
	Path:        "/networking/v2.0/ports",
	SingularKey: "port",
	PluralKey:   "ports",
	IDKey:       "id",
	NameKey:     "name",
	NameFilter:  "name",
	IsID:        cli.IsUUID,
	Columns:     []string{"id", "name", "status", "binding:host_id", "device_owner", "fixed_ips"},
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
			Flag:  "host",
			Key:   "binding:host_id",
			Help:  "host to which the port is bound; an empty value unbinds the port",
			Parse: cli.Text,
		},
		{
			Flag:  "device",
			Key:   "device_id",
			Help:  "device that uses the port, for example a server's UUID",
			Parse: cli.Text,
		},
		{
			Flag:  "device-owner",
			Key:   "device_owner",
			Help:  "type of the device, for example compute:nova",
			Parse: cli.Text,
		},
		{
			Flag:       "fixed-ip",
			Key:        "fixed_ips",
			Help:       "fixed IP as subnet=NAME,address=IP, or none; may be repeated",
			Parse:      parseFixedIPs,
			Repeatable: true,
		},
		{
			Flag:  "mac",
			Key:   "mac_address",
			Help:  "MAC address",
			Parse: cli.Text,
		},
		{
			Flag:  "vnic-type",
			Key:   "binding:vnic_type",
			Help:  "VNIC type of the port, for example normal or direct",
			Parse: cli.Text,
		},
		{
			Flag:  "profile",
			Key:   "binding:profile",
			Help:  "binding profile, as JSON",
			Parse: cli.JSON,
		},
		{
			Flag:  "admin-up",
			Key:   "admin_state_up",
			Help:  "true or false",
			Parse: cli.Boolean,
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
			Help:    "project that owns the port; only administrators may set it",
			Parse:   cli.Text,
			OnlyFor: "create",
		},
	},
}

// parseFixedIPs parses fixed IPs of the form subnet=NAME,address=IP. Each fixed IP may lack either the subnet
// or the address. The word `none` instead of fixed IPs means that the port gets no fixed IP.
func parseFixedIPs(ctx context.Context, s *cli.Session, words []string) (any, error) {
	all := []cli.Object{}
	for _, word := range words {
		if word == "none" {
			continue
		}
		parts, err := cli.ParsePairs(strings.Split(word, ","))
		if err != nil {
			return nil, cli.UsageError("fixed IP %q is not subnet=NAME,address=IP", word)
		}
		ip := cli.Object{}
		for name, value := range parts {
			switch name {
			case "subnet":
				if ip["subnet_id"], err = Subnets.Resolve(ctx, s, value); err != nil {
					return nil, err
				}
			case "address":
				ip["ip_address"] = value
			default:
				return nil, cli.UsageError(
					"fixed IP %q has the unknown key %q; the keys are subnet and address", word, name,
				)
			}
		}
		all = append(all, ip)
	}
	return all, nil
}
