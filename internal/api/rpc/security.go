package rpc

import "context"

// securityMethods are what agents with a firewall of the older kind call, before they fetched security groups as objects. They are
// told of no device, and filter nothing.
var securityMethods = map[string]method{
	"security_group_info_for_devices": with(func(context.Context, *Desk, struct{}) (any, error) {
		return object{"devices": object{}, "security_groups": object{}, "sg_member_ips": object{}}, nil
	}),
	"security_group_rules_for_devices": with(func(context.Context, *Desk, struct{}) (any, error) { return object{}, nil }),
}
