package rpc

import (
	"context"
	"fmt"
	"math/rand/v2"

	"berth/internal/api/rpc/oslomsg"
)

// dvrMethods are the methods that Open vSwitch agents with distributed virtual routing (DVR) call when they
// start. Although berth has no routers, it assigns a DVR MAC to each host of an agent with DVR, because an
// agent with DVR starts only if its host has a DVR MAC.
func (h *handlers) dvrMethods() map[string]oslomsg.Method {
	return map[string]oslomsg.Method{
		"get_dvr_mac_address_by_host": oslomsg.WithArgs(h.dvrMACOfHost),
		"get_dvr_mac_address_list": oslomsg.WithArgs(func(ctx context.Context, _ struct{}) (any, error) {
			all, err := h.Store.RouterMACs(ctx)
			return emptyIfNil(all), err
		}),
		"get_ports_on_host_by_subnet": oslomsg.WithArgs(func(context.Context, struct{}) (any, error) {
			return []object{}, nil
		}),
		"get_subnet_for_dvr": oslomsg.WithArgs(func(context.Context, struct{}) (any, error) {
			return object{}, nil
		}),
	}
}

type hostArgs struct {
	Host string `json:"host"`
}

func (h *handlers) dvrMACOfHost(ctx context.Context, a hostArgs) (any, error) {
	host := h.sender.host(a.Host)
	if host == "" {
		return nil, nil
	}
	if err := checkNames(host); err != nil {
		return nil, err
	}
	return h.Store.RouterMAC(ctx, host, randomDVRMAC)
}

// randomDVRMAC returns a random MAC address that begins with fa:16:3f, as Neutron's default dvr_base_mac
// does.
func randomDVRMAC() string {
	n := rand.N(1 << 24)
	return fmt.Sprintf("fa:16:3f:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)
}
