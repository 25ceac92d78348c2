package rpc

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// routerMethods are what agents call at their start where routers are distributed. berth has no routers; a host's MAC it gives all the same,
// so that such an agent starts.
var routerMethods = map[string]method{
	"get_dvr_mac_address_by_host": with(func(ctx context.Context, d *Desk, a hostArgs) (any, error) {
		if a.Host == "" {
			return nil, nil
		}
		if len(a.Host) > maxName {
			return nil, badArgument("a host is longer than %d bytes", maxName)
		}
		m, err := d.Store.RouterMAC(ctx, a.Host, routerMAC)
		return m, err
	}),
	"get_dvr_mac_address_list": with(func(ctx context.Context, d *Desk, _ struct{}) (any, error) {
		all, err := d.Store.RouterMACs(ctx)
		return list(all), err
	}),
	"get_ports_on_host_by_subnet": with(func(context.Context, *Desk, struct{}) (any, error) { return []object{}, nil }),
	"get_subnet_for_dvr":          with(func(context.Context, *Desk, struct{}) (any, error) { return object{}, nil }),
}

type hostArgs struct {
	Host string `json:"host"`
}

// routerMAC is one by chance of those that Neutron gives the hosts' routers.
func routerMAC() string {
	n := rand.N(1 << 24)
	return fmt.Sprintf("fa:16:3f:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)
}
