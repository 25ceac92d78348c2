"""Tests Nova's network API with the calls of nova-compute. The test needs no database of Nova, because the instances are in memory."""
import os
import unittest
import uuid
from unittest import mock

import nova.conf
import openstack
from nova import context, exception, objects
from nova.network import model, neutron

objects.register_all()
nova.conf.CONF([], default_config_files=[os.environ["NOVA_CONF"]])


def flavor():
    return objects.Flavor(id=1, flavorid="1", name="small", memory_mb=512, vcpus=1, root_gb=1, ephemeral_gb=0, swap=0, extra_specs={})


def request_of(caller, is_admin=False):
    """The context of a request that a user or an operator has sent to Nova."""
    url = caller.session.get_endpoint(service_type="network", interface="public")
    catalog = [{"type": "network", "name": "neutron", "endpoints": [{"region": "RegionOne", "publicURL": url}]}]
    return context.RequestContext(user_id=caller.current_user_id, project_id=caller.current_project_id, auth_token=caller.auth_token,
                                  service_catalog=catalog, is_admin=is_admin)


class NetworkAPI(unittest.TestCase):
    def setUp(self):
        # These methods read and write Nova's own records of the interfaces in Nova's database.
        for owner, method in (objects.InstanceInfoCache, "refresh"), (objects.InstanceInfoCache, "save"), \
                (objects.VirtualInterface, "create"), (objects.VirtualInterface, "delete_by_instance_uuid"):
            record = mock.patch.object(owner, method)
            record.start()
            self.addCleanup(record.stop)
        self.cloud = openstack.connect(cloud="devstack-admin")
        user = openstack.connect(cloud="devstack")
        self.context, self.operator = request_of(user), request_of(self.cloud, is_admin=True)
        self.network = user.network.create_network(name="blue")
        self.addCleanup(self.cloud.network.delete_network, self.network.id)
        user.network.create_subnet(network_id=self.network.id, ip_version=4, cidr="10.0.0.0/24")
        self.given = user.network.create_port(network_id=self.network.id)
        self.addCleanup(lambda: [self.cloud.network.delete_port(p) for p in self.cloud.network.ports(network_id=self.network.id)])
        self.api = neutron.API()
        self.instance = objects.Instance(
            self.context, id=1, uuid=str(uuid.uuid4()), project_id=self.context.project_id, user_id=self.context.user_id, host="cmp-1", node="cmp-1",
            hostname="web", display_name="web", availability_zone="nova", flavor=flavor(), deleted=False, system_metadata={}, metadata={},
            pci_requests=objects.InstancePCIRequests(requests=[]), pci_devices=objects.PciDeviceList(objects=[]), device_metadata=None)
        self.instance.info_cache = objects.InstanceInfoCache(instance_uuid=self.instance.uuid, network_info=model.NetworkInfo([]))

    def allocate(self):
        """Gives the instance two interfaces on the host cmp-1: the given port and a new port."""
        requests = objects.NetworkRequestList(objects=[objects.NetworkRequest(port_id=self.given.id), objects.NetworkRequest(network_id=self.network.id)])
        nets = self.api.validate_networks(self.context, requests, 1)
        self.assertEqual(1, nets)
        return self.api.allocate_for_instance(self.context, self.instance, requests, security_groups=["default"], bind_host_id="cmp-1")

    def hosts(self, port):
        """Returns the status of each binding of a port, by host."""
        return {b.host: b.status for b in self.cloud.network.port_bindings(port)}

    def profiles(self):
        return [p.binding_profile for p in self.cloud.network.ports(device_id=self.instance.uuid)]

    def test_allocate_and_deallocate(self):
        found = self.allocate()

        self.assertEqual(self.given.id, found[0]["id"])
        self.assertEqual(["ovs", "ovs"], [v["type"] for v in found])
        self.assertEqual([True, False], [v["preserve_on_delete"] for v in found])
        self.assertEqual(2, len({ip["address"] for v in found for ip in v.fixed_ips()}))
        for vif in found:
            port = self.api.show_port(self.context, vif["id"])["port"]
            self.assertEqual((self.instance.uuid, "compute:nova", self.context.project_id), (port["device_id"], port["device_owner"], port["project_id"]))
            self.assertEqual({"cmp-1": "ACTIVE"}, self.hosts(vif["id"]))

        self.api.deallocate_for_instance(self.context, self.instance)

        self.assertIsNone(self.cloud.network.find_port(found[1]["id"]))
        port = self.cloud.network.get_port(self.given.id)
        self.assertEqual(("", "", "", "unbound"), (port.device_id, port.device_owner, port.binding_host_id, port.binding_vif_type))

    def test_live_migration(self):
        found = self.allocate()
        migration = objects.Migration(self.operator, source_compute="cmp-1", dest_compute="cmp-2", migration_type="live-migration")

        self.api.setup_networks_on_host(self.operator, self.instance, "cmp-2")
        self.assertEqual([{"migrating_to": "cmp-2"}] * 2, self.profiles())
        bindings = self.api.bind_ports_to_host(self.operator, self.instance, "cmp-2")
        self.assertEqual({v["id"]: "INACTIVE" for v in found}, {port: b["status"] for port, b in bindings.items()})

        self.api.migrate_instance_start(self.operator, self.instance, migration)
        for vif in found:
            self.assertEqual({"cmp-1": "INACTIVE", "cmp-2": "ACTIVE"}, self.hosts(vif["id"]))
        self.api.migrate_instance_start(self.operator, self.instance, migration)

        self.api.migrate_instance_finish(self.operator, self.instance, migration, None)
        self.instance.host = "cmp-2"
        self.api.setup_networks_on_host(self.operator, self.instance, "cmp-1", teardown=True)

        for vif in found:
            self.assertEqual({"cmp-2": "ACTIVE"}, self.hosts(vif["id"]))
        self.assertEqual([{}, {}], self.profiles())
        self.api.deallocate_for_instance(self.context, self.instance)

    def test_live_migration_rolled_back(self):
        found = self.allocate()
        self.api.setup_networks_on_host(self.operator, self.instance, "cmp-2")
        self.api.bind_ports_to_host(self.operator, self.instance, "cmp-2")

        self.api.setup_networks_on_host(self.operator, self.instance, "cmp-2", teardown=True)

        for vif in found:
            self.assertEqual({"cmp-1": "ACTIVE"}, self.hosts(vif["id"]))
        self.assertEqual([{}, {}], self.profiles())

    def test_cold_migration(self):
        found = self.allocate()
        migration = objects.Migration(self.operator, source_compute="cmp-1", dest_compute="cmp-2", migration_type="migration")
        self.api.setup_networks_on_host(self.operator, self.instance, "cmp-2")

        self.api.migrate_instance_start(self.operator, self.instance, migration)
        self.api.migrate_instance_finish(self.operator, self.instance, migration, None)

        for vif in found:
            self.assertEqual({"cmp-2": "ACTIVE"}, self.hosts(vif["id"]))
        self.assertEqual([{}, {}], self.profiles())

    def test_host_without_agent(self):
        self.allocate()

        with self.assertRaises(exception.PortBindingFailed):
            self.api.bind_ports_to_host(self.operator, self.instance, "cmp-9")

        self.assertEqual({"cmp-1": "ACTIVE"}, self.hosts(self.given.id))
