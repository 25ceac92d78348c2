"""python-chi's module for leases, as a user of Chameleon calls it."""
import datetime
import unittest

import openstack
from blazarclient import client
from chi import exception, lease


class Lease(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Registers the resources that the user reserves: one host and two floating IPs."""
        cls.cloud = openstack.connect(cloud="devstack-admin")
        cls.blazar = client.Client("1", service_type="reservation", session=cls.cloud.session)
        host = cls.blazar.host.create("cmp-1", node_type="compute_skylake", node_name="nc01")
        cls.addClassCleanup(cls.blazar.host.delete, host["id"])
        public = cls.cloud.network.find_network("public")
        for address in "172.24.4.2", "172.24.4.3":
            made = cls.blazar.floatingip.create(public.id, address)
            cls.addClassCleanup(cls.blazar.floatingip.delete, made["id"])

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
