package resource

import "berth/starter/cli"

// Networks is the cli.Resource for Neutron's networks.
var Networks = &cli.Resource{
	Name:        "network",
	Path:        "/networking/v2.0/networks",
	SingularKey: "network",
	PluralKey:   "networks",
	IDKey:       "id",
	NameKey:     "name",
	NameFilter:  "name",
	IsID:        cli.IsUUID,
	Columns:     []string{"id", "name", "status", "subnets", "admin_state_up"},
	Fields: []cli.Field{
		{
			Flag:    "name",
			Key:     "name",
			Help:    "new name",
			Parse:   cli.Text,
			OnlyFor: "set",
		},
		{
			Flag:  "description",
			Key:   "description",
			Help:  "free text",
			Parse: cli.Text,
		},
		{
			Flag:  "admin-up",
			Key:   "admin_state_up",
			Help:  "true or false",
			Parse: cli.Boolean,
		},
		{
			Flag:  "shared",
			Key:   "shared",
			Help:  "true or false: whether all projects may use the network",
			Parse: cli.Boolean,
		},
		{
			Flag:    "mtu",
			Key:     "mtu",
			Help:    "maximum transmission unit in bytes",
			Parse:   cli.Number,
			OnlyFor: "create",
		},
		{
			Flag:    "project",
			Key:     "project_id",
			Help:    "project that owns the network; only administrators may set it",
			Parse:   cli.Text,
			OnlyFor: "create",
		},
	},
}
