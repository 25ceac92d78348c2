package resource

import "berth/starter/cli"

// Trunks is the cli.Resource for Neutron's trunks.
var Trunks = &cli.Resource{
	Name:        "trunk",
	Path:        "/networking/v2.0/trunks",
	SingularKey: "trunk",
	PluralKey:   "trunks",
	IDKey:       "id",
	NameKey:     "name",
	NameFilter:  "name",
	IsID:        cli.IsUUID,
	Columns:     []string{"id", "name", "status", "port_id", "sub_ports"},
}
