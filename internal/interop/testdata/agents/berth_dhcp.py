"""A DHCP driver for the DHCP agent. The driver has a port on each network, as every driver has, but starts no DHCP server."""

from neutron.agent.linux import dhcp


class Driver(dhcp.DhcpBase):
    def __init__(self, conf, network, process_monitor, version=None, plugin=None):
        super().__init__(conf, network, process_monitor, version, plugin)
        self.plugin = plugin

    def enable(self):
        self.device_manager.setup_dhcp_port(self.network)
        self.say("serves")

    def disable(self, retain_port=False, block=False):
        if not retain_port:
            device = self.device_manager.get_device_id(self.network)
            self.plugin.release_dhcp_port(self.network.id, device)
        self.say("leaves")

    def reload_allocations(self):
        self.say("serves")

    def say(self, what):
        addresses = [f.ip_address for p in self.network.ports for f in p.fixed_ips]
        print("dhcp", what, self.network.id, *sorted(addresses), flush=True)

    @property
    def active(self):
        return True

    @classmethod
    def existing_dhcp_networks(cls, conf):
        return []

    @classmethod
    def check_version(cls):
        return None

    @classmethod
    def get_isolated_subnets(cls, network):
        return {}

    @classmethod
    def should_enable_metadata(cls, conf, network):
        return False
