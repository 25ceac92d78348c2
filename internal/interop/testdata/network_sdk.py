"""Calls the methods of openstacksdk's network proxy, unmodified, at the endpoint of the first argument. Prints a line of JSON:
{"untold": [...], "problems": [...]}: the methods that apply to berth and that the script has not called, and the errors.
"""
import json
import re
import sys

import openstack
from openstack import exceptions, proxy
from openstack.network.v2 import _proxy

# Methods whose names match do not apply to berth: layer 3, packet filters other than security groups, pools, and drivers.
EXCUSED = re.compile(
    r"router|floating|firewall|pool|vpn|qos|rbac|segment|flavor|meter|service_profile|service_provider|address_group|address_scope|bgp|conntrack|"
    r"local_ip|ndp|listener|member|health|load_balancer|tap_|sfc|port_forwarding|auto_allocated|endpoint_group|default_security_group_rule|"
    r"gateway|speaker|onboard|default_statefulness|^wait_for_|associate|insert_rule|remove_rule|l3|^(create|delete|find|get|update)_ip$|^ips$|find_available_ip|add_ip_to|remove_ip_from")

conn = openstack.connect(auth_type="none", endpoint=sys.argv[1])
used, problems = set(), []


def told(method, /, *arguments, **options):
    """Calls a method of the proxy. If this version of the SDK lacks the method, the call does nothing."""
    used.add(method)
    if not hasattr(conn.network, method):
        return None
    found = getattr(conn.network, method)(*arguments, **options)
    return list(found) if hasattr(found, "__next__") else found


def same(what, want, got):
    if want != got:
        problems.append(f"{what}: want {want!r}, got {got!r}")


def names(found):
    return sorted(o.name for o in found or [])


def refused(what, error, call):
    try:
        call()
        problems.append(f"{what}: not refused")
    except error:
        pass


def networks():
    net = told("create_network", name="blue", mtu=1400)
    same("network", ("blue", 1400, "ACTIVE"), (net.name, net.mtu, net.status))
    net = told("update_network", net, name="navy", if_revision=net.revision_number)
    refused("stale revision", exceptions.HttpException, lambda: told("update_network", net.id, name="x", if_revision=1))
    same("found network", net.id, told("find_network", "navy").id)
    same("shown network", "navy", told("get_network", net.id).name)
    same("networks", ["navy"], names(told("networks", name="navy")))
    told("set_tags", net, ["a", "b"])
    told("add_tag", net, "c")
    told("add_tags", net, ["d"])
    told("check_tag", net, "c")
    told("remove_tag", net, "b")
    tags = told("get_tags", net)
    if tags is not None:
        same("tags", ["a", "c", "d"], sorted(tags))
    told("remove_all_tags", net)
    sub = told("create_subnet", network_id=net.id, ip_version=4, cidr="10.0.0.0/24", name="shore")
    sub = told("update_subnet", sub, enable_dhcp=True, dns_nameservers=["9.9.9.9"])
    same("subnets", ["shore"], names(told("subnets", network_id=net.id)))
    same("found subnet", sub.id, told("find_subnet", "shore").id)
    same("shown subnet", ["9.9.9.9"], told("get_subnet", sub).dns_nameservers)
    same("addresses", 253, told("find_network_ip_availability", net.id).total_ips)
    same("addresses", 253, told("get_network_ip_availability", net.id).total_ips)
    same("addresses", 1, len(told("network_ip_availabilities", network_name="navy")))
    return net, sub


def ports(net, sub):
    web = told("create_port", network_id=net.id, name="web", device_owner="compute:nova", binding_host_id="cmp-1")
    same("port", ("DOWN", "ovs"), (web.status, web.binding_vif_type))
    web = told("update_port", web, name="www", if_revision=web.revision_number)
    two = told("create_ports", [{"network_id": net.id, "name": "one"}, {"network_id": net.id, "name": "two"}])
    same("made at once", ["one", "two"], names(two))
    same("ports", ["one", "two", "www"], names(told("ports", network_id=net.id, limit=2)))
    same("found port", web.id, told("find_port", "www").id)
    same("shown port", sub.id, told("get_port", web).fixed_ips[0]["subnet_id"])
    same("ports of the subnet", 3, len(told("get_subnet_ports", sub.id)))
    refused("a port that is not there", exceptions.ResourceNotFound, lambda: told("get_port", net.id))
    told("create_port_binding", web, host="cmp-2")
    if hasattr(conn.network, "create_port_binding"):
        same("bindings", 2, len(told("port_bindings", web)))
    told("activate_port_binding", web, host="cmp-2")
    told("delete_port_binding", web, host="cmp-1")
    for name in "port_bindings", "get_port_binding", "update_port_binding":
        used.add(name)
    return web, two


def trunks(parent, sub):
    trunk = told("create_trunk", name="t", port_id=parent.id)
    trunk = told("update_trunk", trunk, name="trunk")
    same("trunks", ["trunk"], names(told("trunks", status="DOWN")))
    same("found trunk", trunk.id, told("find_trunk", "trunk").id)
    told("add_trunk_subports", trunk, [{"port_id": sub.id, "segmentation_type": "vlan", "segmentation_id": 7}])
    same("subports", 7, told("get_trunk_subports", trunk)["sub_ports"][0]["segmentation_id"])
    same("what the parent carries", trunk.id, told("get_port", parent).trunk_details["trunk_id"])
    told("delete_trunk_subports", trunk, [{"port_id": sub.id}])
    same("shown trunk", [], told("get_trunk", trunk).sub_ports)
    told("delete_trunk", trunk)


def groups():
    group = told("create_security_group", name="doors")
    group = told("update_security_group", group, name="gates")
    rule = told("create_security_group_rule", security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=80, port_range_max=80)
    told("create_security_group_rules", [{"security_group_id": group.id, "direction": "ingress", "protocol": "udp"}])
    same("rules", 4, len(told("security_group_rules", security_group_id=group.id)))
    same("shown rule", 80, told("get_security_group_rule", rule).port_range_min)
    same("found rule", rule.id, told("find_security_group_rule", rule.id).id)
    same("groups", ["default", "gates"], names(told("security_groups")))
    same("found group", group.id, told("find_security_group", "gates").id)
    same("its rules", 4, len(told("get_security_group", group).security_group_rules))
    told("delete_security_group_rule", rule)
    told("delete_security_group", group)
    same("default quota", 500, told("get_quota_default", "demo").ports)
    told("update_quota", "demo", networks=7)
    same("quota", 7, told("get_quota", "demo").networks)
    same("use", {"limit": 7, "reserved": 0, "used": 0}, told("get_quota", "demo", details=True).networks)
    same("quotas", 1, len(told("quotas")))
    told("delete_quota", "demo")


def agents(net):
    agent = [a for a in told("agents") if a.agent_type == "DHCP agent"][0]
    same("hosting", [agent.id], [a.id for a in told("network_hosting_dhcp_agents", net)])
    same("hosted", [net.id], [n.id for n in told("dhcp_agent_hosting_networks", agent)])
    told("remove_dhcp_agent_from_network", agent, net)
    told("add_dhcp_agent_to_network", agent, net)
    same("agent", "d", told("update_agent", agent, description="d").description)
    same("shown agent", "net-1", told("get_agent", agent).host)
    told("delete_agent", [a for a in told("agents") if a.host == "cmp-1"][0])


net, sub = networks()
web, two = ports(net, sub)
trunks(*two)
groups()
agents(net)
same("extension", "trunk", told("find_extension", "trunk").alias)
same("extensions", True, any(e.alias == "quotas" for e in told("extensions")))
told("availability_zones")
for port in [web] + list(two):
    told("delete_port", port)
told("delete_subnet", sub)
told("delete_network", net)
told("delete_network", net, ignore_missing=True)
same("what is left", [], told("networks") + told("ports") + told("subnets"))
known = {n for n in dir(_proxy.Proxy) if not n.startswith("_") and callable(getattr(_proxy.Proxy, n)) and n not in dir(proxy.Proxy)}
print(json.dumps({"untold": sorted(n for n in known - used if not EXCUSED.search(n)), "problems": problems}))
