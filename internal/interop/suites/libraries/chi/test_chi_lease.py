"""Tests the module chi.lease of python-chi, which users of Chameleon call."""
import datetime
import unittest

import openstack
from blazarclient import client
from chi import clients, exception, lease


class Lease(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Registers the resources that the user reserves: a host, floating IPs, a network segment and devices. Only Chameleon's own client,
        which is not on PyPI, has methods for network segments and devices."""
        cls.cloud = openstack.connect(cloud="devstack-admin")
        cls.blazar = client.Client("1", service_type="reservation", session=cls.cloud.session)
        host = cls.blazar.host.create("cmp-1", node_type="compute_skylake", node_name="nc01")
        cls.addClassCleanup(cls.blazar.host.delete, host["id"])
        public = cls.cloud.network.find_network("public")
        for address in "172.24.4.2", "172.24.4.3":
            made = cls.blazar.floatingip.create(public.id, address)
            cls.addClassCleanup(cls.blazar.floatingip.delete, made["id"])
        requests = cls.blazar.host.request_manager
        for path, values in [
            ("/networks", {"network_type": "vlan", "physical_network": "physnet1", "segment_id": "100", "usage_type": "storage"}),
            ("/devices", {"name": "iot-1", "device_type": "container", "device_driver": "k8s", "machine_name": "raspberrypi4-64"}),
            ("/devices", {"name": "iot-2", "device_type": "container", "device_driver": "k8s", "machine_name": "jetson-nano", "model": "B01"}),
        ]:
            made = requests.post(path, body=values)[1][path.strip("s/")]
            cls.addClassCleanup(requests.delete, f"{path}/{made['id']}")

    def setUp(self):
        self.addCleanup(lambda: [found.delete() for found in lease.list_leases()])

    def reserve(self, name, start=datetime.datetime(2040, 1, 1, 10), end=datetime.datetime(2040, 1, 2, 10), **node):
        night = lease.Lease(name, start_date=start, end_date=end)
        night.add_node_reservation(amount=1, **(node or {"node_type": "compute_skylake"}))
        night.submit(wait_for_active=False)
        return night

    def test_host(self):
        night = self.reserve("night")

        for found in night, lease.get_lease("night"), lease.get_lease(night.id), *lease.list_leases():
            self.assertEqual((night.id, "night", "PENDING"), (found.id, found.name, found.status))
            self.assertEqual((datetime.datetime(2040, 1, 1, 10), datetime.datetime(2040, 1, 2, 10)), (found.start_date, found.end_date))
            self.assertLess(abs(found.created_at - datetime.datetime.now(datetime.UTC).replace(tzinfo=None)), datetime.timedelta(hours=1))
            self.assertEqual(["physical:host"], [r["resource_type"] for r in found.node_reservations])

    def test_host_by_name(self):
        self.reserve("night", node_name="nc01")
        with self.assertRaises(exception.ResourceError):
            self.reserve("day", start=datetime.datetime(2041, 1, 1, 10), end=datetime.datetime(2041, 1, 1, 11), node_name="nc02")

    def test_host_in_use(self):
        self.reserve("night")
        with self.assertRaises(exception.ResourceError):
            self.reserve("late", start=datetime.datetime(2040, 1, 1, 12))

    def test_public_addresses(self):
        night = lease.Lease("night", start_date=datetime.datetime(2040, 1, 1, 10), end_date=datetime.datetime(2040, 1, 2, 10))
        night.add_fip_reservation(2)
        night.submit(wait_for_active=False)

        self.assertEqual([("virtual:floatingip", 2)], [(r["resource_type"], r["amount"]) for r in lease.get_lease("night").fip_reservations])

    def start(self, add):
        """Returns a lease that has started. The given function adds the reservation of the lease."""
        today = lease.Lease("today", duration=datetime.timedelta(hours=1))
        add(today)
        today.submit(wait_for_active=True)
        return today

    def test_network(self):
        today = self.start(lambda new: new.add_network_reservation("lab", usage_type="storage"))

        found = lease.get_lease(today.id).network_reservations
        self.assertEqual([("network", "active", "lab")], [(r["resource_type"], r["status"], r["network_name"]) for r in found])
        self.assertTrue(found[0]["network_id"])

    def test_network_in_use(self):
        self.start(lambda new: new.add_network_reservation("lab"))
        late = lease.Lease("late", duration=datetime.timedelta(hours=1))
        late.add_network_reservation("lab")

        with self.assertRaises(exception.ResourceError):
            late.submit(wait_for_active=False)

    def test_networks_of_the_older_interface(self):
        made = clients.blazar().lease.create(**lease.lease_create_args(None, name="old", nodes=0, networks=1))

        self.assertEqual(["network"], [r["resource_type"] for r in made["reservations"]])

    def test_devices(self):
        for name, add in {
            "amount": lambda new: new.add_device_reservation(amount=2),
            "machine_type": lambda new: new.add_device_reservation(amount=1, machine_type="raspberrypi4-64"),
            "machine_type and model": lambda new: new.add_device_reservation(amount=1, machine_type="jetson-nano", device_model="B01"),
            "name": lambda new: new.add_device_reservation(amount=1, device_name="iot-2"),
        }.items():
            with self.subTest(name):
                today = self.start(add)
                found = lease.get_lease(today.id).device_reservations
                today.delete()
                self.assertEqual([("device", "active")], [(r["resource_type"], r["status"]) for r in found])

    def test_too_many_devices(self):
        with self.assertRaises(exception.ResourceError):
            self.start(lambda new: new.add_device_reservation(amount=3))

    def test_starts_now(self):
        today = lease.Lease("today", duration=datetime.timedelta(hours=1))
        today.add_node_reservation(amount=1, node_type="compute_skylake")
        today.submit(wait_for_active=True)

        self.assertEqual(("ACTIVE", "active"), (today.status, today.node_reservations[0]["status"]))

    def test_submitted_twice(self):
        night = self.reserve("night")
        again = lease.Lease("night", start_date=datetime.datetime(2040, 1, 1, 10), end_date=datetime.datetime(2040, 1, 2, 10))
        again.submit(wait_for_active=False, idempotent=True)

        self.assertEqual(night.id, again.id)

    def test_delete(self):
        night = self.reserve("night")
        lease.delete_lease("night")

        with self.assertRaises(exception.CHIValueError):
            lease.get_lease(night.id)
        self.assertEqual([], lease.list_leases())
