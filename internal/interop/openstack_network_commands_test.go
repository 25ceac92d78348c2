package interop

// commandCase is a command of the openstack client and the expected output of the command, in which # stands
// for any ID. If the expected output has the prefix "error: ", the command must fail with a message that
// contains the text after the prefix. If the expected output has the prefix "has: ", one line of the
// command's output must equal the text after the prefix.
type commandCase struct{ line, want string }

// networkCommands use every network command of the client that applies to berth, and delete the objects that
// they create. The placeholders {dhcp} and {l2} stand for the IDs of a DHCP agent and of an L2 agent.
var networkCommands = []commandCase{
	{"extension list --network -f value -c Alias", "has: trunk"},
	{"extension show trunk -f value -c alias", "trunk"},

	{
		"network create blue --mtu 1400 --description sea --tag a -f value -c name -c mtu -c description -c tags -c status",
		"sea|1400|blue|ACTIVE|['a']",
	},
	{
		"network create red --provider-network-type vlan --provider-physical-network phys --provider-segment 7 --share -f value -c provider:segmentation_id -c shared",
		"7|True",
	},
	{
		"network create green --provider-network-type nonsense",
		"error: network_type value 'nonsense' not supported.",
	},
	{"network list --sort-column Name -f value -c Name", "blue|red"},
	{"network list --tags a --long -f value -c Name -c Tags", "blue ['a']"},
	{"network set blue --name navy --disable --tag b", ""},
	{"network set navy --enable", ""},
	{"network show navy -f value -c name -c admin_state_up -c tags", "True|navy|['a', 'b']"},
	{"network unset navy --tag a", ""},
	{"network list --any-tags a,b -f value -c Name", "navy"},
	{"network list --not-tags b -f value -c Name", "red"},
	{"network show nobody", "error: nobody"},

	{
		"subnet create sea --network navy --subnet-range 10.0.0.0/24 --allocation-pool start=10.0.0.10,end=10.0.0.20 --dns-nameserver 9.9.9.9 --host-route destination=10.9.0.0/24,gateway=10.0.0.9 --tag a -f value -c cidr -c gateway_ip -c allocation_pools -c dns_nameservers -c host_routes -c tags",
		"[{'start': '10.0.0.10', 'end': '10.0.0.20'}]|10.0.0.0/24|['9.9.9.9']|10.0.0.1|[{'destination': '10.9.0.0/24', 'nexthop': '10.0.0.9'}]|['a']",
	},
	{
		"subnet create other --network navy --subnet-range 10.0.0.128/25",
		"error: overlaps with another subnet",
	},
	{
		"subnet create six --network navy --ip-version 6 --subnet-range fd00::/64 --ipv6-address-mode slaac --ipv6-ra-mode slaac -f value -c ip_version -c ipv6_address_mode",
		"6|slaac",
	},
	{
		"subnet list --network navy --sort-column Name -f value -c Name -c Subnet",
		"sea 10.0.0.0/24|six fd00::/64",
	},
	{"subnet set sea --name shore --dns-nameserver 8.8.8.8 --no-dhcp --tag b", ""},
	{"subnet set shore --dhcp --gateway 10.0.0.2", ""},
	{
		"subnet unset shore --dns-nameserver 9.9.9.9 --host-route destination=10.9.0.0/24,gateway=10.0.0.9 --tag a",
		"",
	},
	{
		"subnet show shore -f value -c name -c enable_dhcp -c gateway_ip -c dns_nameservers -c host_routes -c tags",
		"['8.8.8.8']|True|10.0.0.2|[]|shore|['b']",
	},
	{"subnet delete six", ""},

	{
		"port create web --network navy --fixed-ip subnet=shore,ip-address=10.0.0.12 --mac-address fa:16:3e:00:00:01 --host cmp-1 --device-owner compute:nova --device srv-1 --tag a -f value -c name -c fixed_ips -c status -c binding_vif_type -c tags",
		"ovs|[{'ip_address': '10.0.0.12', 'subnet_id': '#'}]|web|DOWN|['a']",
	},
	{
		"port set web --allowed-address ip-address=10.0.0.99 --extra-dhcp-option name=mtu,value=1400 --binding-profile a=b",
		"",
	},
	{"port show web -f value -c allowed_address_pairs -c extra_dhcp_opts -c binding_profile",
		"[{'ip_address': '10.0.0.99', 'mac_address': 'fa:16:3e:00:00:01'}]|{'a': 'b'}|[{'ip_version': 4, 'opt_name': 'mtu', 'opt_value': '1400'}]"},
	{
		"port create clash --network navy --fixed-ip subnet=shore,ip-address=10.0.0.12",
		"error: IP address 10.0.0.12 already allocated in subnet",
	},
	{
		"port create trunked --network navy --no-fixed-ip --vnic-type normal -f value -c name -c fixed_ips",
		"[]|trunked",
	},
	{
		"port create sub --network navy --no-fixed-ip --disable-port-security --no-security-group -f value -c port_security_enabled",
		"False",
	},
	{"port list --network navy --device-owner compute:nova -f value -c Name -c Status", "web DOWN"},
	{"ip availability list -f value", "has: # navy 11 1"},
	{"ip availability show navy -f value -c total_ips -c used_ips", "11|1"},
	{"port list --host cmp-1 --long -f value -c Name", "web"},
	{"port list --fixed-ip ip-address=10.0.0.12 -f value -c Name", "web"},
	{"port list --mac-address fa:16:3e:00:00:01 --tags a -f value -c Name", "web"},
	{"port set web --mac-address fa:16:3e:00:00:02", "error: port is already bound"},
	{
		"port set web --name www --fixed-ip ip-address=10.0.0.13 --allowed-address ip-address=10.0.0.98 --description d --tag b",
		"",
	},
	{
		"port unset www --fixed-ip subnet=shore,ip-address=10.0.0.13 --allowed-address ip-address=10.0.0.99,mac-address=fa:16:3e:00:00:01 --binding-profile a --tag a",
		"",
	},
	{
		"port show www -f value -c name -c fixed_ips -c allowed_address_pairs -c binding_profile -c description -c tags",
		"[{'ip_address': '10.0.0.98', 'mac_address': 'fa:16:3e:00:00:01'}]|{}|d|[{'ip_address': '10.0.0.12', 'subnet_id': '#'}]|www|['b']",
	},
	{"port set www --disable", ""},
	{"port unset www --host", ""},
	{"port list --host cmp-1 -f value", ""},

	{"network agent list --sort-column Host -f value -c Host", "cmp-1|net-1"},
	{"network agent list --network navy -f value -c Host", "net-1"},
	{"network list --agent {dhcp} -f value -c Name", "navy"},
	{"network agent set {dhcp} --description d --disable", ""},
	{"network agent show {dhcp} -f value -c host -c description", "d|net-1"},
	{"network agent set {dhcp} --enable", ""},
	{"network agent remove network --dhcp {dhcp} navy", ""},
	{"network agent list --network navy -f value -c Host", ""},
	{"network agent add network --dhcp {dhcp} navy", ""},
	{"network agent list --network navy -f value -c Host", "net-1"},
	{"network agent delete {l2}", ""},
	{"network agent list -f value -c Host", "net-1"},

	{
		"network trunk create t --parent-port trunked --subport port=sub,segmentation-type=vlan,segmentation-id=7 -f value -c name -c status -c sub_ports",
		"t|DOWN|[{'port_id': '#', 'segmentation_type': 'vlan', 'segmentation_id': 7}]",
	},
	{"network trunk list -f value -c Name", "t"},
	{"network trunk set t --name trunk --description d --disable", ""},
	{"network trunk set trunk --enable", ""},
	{"network trunk show trunk -f value -c name -c description", "d|trunk"},
	{"network subport list --trunk trunk -f value -c Port", "#"},
	{"network trunk unset trunk --subport sub", ""},
	{"network trunk set trunk --subport port=sub,segmentation-type=vlan,segmentation-id=8", ""},
	{"network subport list --trunk trunk -f value", "# vlan 8"},
	{"network trunk subport list trunk -f value", "# vlan 8"},
	{"network trunk subport remove trunk sub", ""},
	{"network trunk subport add trunk sub --segmentation-type vlan --segmentation-id 9", ""},
	{"port delete sub", "error: is currently a subport for a trunk"},
	{"network trunk delete trunk", ""},

	{"security group list -f value -c Name", "default"},
	{
		"security group create doors --description d --tag a -f value -c name -c description -c tags -c stateful",
		"d|doors|True|['a']",
	},
	{"security group create default", "error: Default security group already exists."},
	{"security group list --tags a -f value -c Name", "doors"},
	{"security group set doors --name gates --description e --tag b", ""},
	{"security group unset gates --tag a", ""},
	{"security group show gates -f value -c name -c description -c tags", "e|gates|['b']"},
	{
		"security group rule create gates --protocol tcp --dst-port 80:443 --remote-ip 10.0.0.0/8 -f value -c direction -c ether_type -c protocol -c port_range_min -c port_range_max -c remote_ip_prefix",
		"ingress|IPv4|443|80|tcp|10.0.0.0/8",
	},
	{
		"security group rule create gates --protocol tcp --dst-port 80:443 --remote-ip 10.0.0.0/8",
		"error: Security group rule already exists. Rule id is ",
	},
	{
		"security group rule create gates --protocol icmp --icmp-type 8 --egress --description ping -f value -c direction -c protocol -c port_range_min -c description",
		"ping|egress|8|icmp",
	},
	{
		"security group rule create gates --remote-group default --ethertype IPv6 -f value -c ether_type -c remote_group_id",
		"IPv6|#",
	},
	{"security group rule create gates --protocol moon", "error: protocol moon not supported"},
	{"security group rule list gates --protocol tcp -f value -c ID", "#"},
	{"security group rule list gates --ingress --long -f value -c Direction", "ingress|ingress"},
	{
		"port create guarded --network navy --no-fixed-ip --security-group gates -f value -c security_group_ids",
		"['#']",
	},
	{"security group delete gates", "error: in use"},
	{"port set guarded --no-security-group --security-group default", ""},
	{"port unset guarded --security-group default", ""},
	{"port set guarded --no-security-group --disable-port-security", ""},
	{"security group rule show {rule} -f value -c direction", "egress"},
	{"security group rule delete {rule}", ""},
	{"security group delete gates", ""},
	{"port delete guarded", ""},

	{"network delete navy", "error: There are one or more ports still in use on the network."},
	{"port delete www trunked sub", ""},
	{"subnet delete shore", ""},
	{"network delete navy red", ""},
	{"port list -f value", ""},
	{"subnet list -f value", ""},
}

// unsupportedCommands are commands for resources that berth does not support: the client must report an
// error.
var unsupportedCommands = []string{
	"router list",
	"router create r",
	"local ip list",
	"subnet pool list",
	"address scope list",
	"address group list",
	"network rbac list",
	"network segment list",
	"network qos policy list",
	"network flavor list",
	"network flavor profile list",
	"network service provider list",
	"network meter list",
	"default security group rule list",
}

// inapplicablePrefixes lists the beginnings of network commands that do not apply to berth, each with the
// reason. A command in networkCommands is run even if it begins with one of inapplicablePrefixes.
var inapplicablePrefixes = map[string]string{
	"router":                              layer3,
	"floating ip":                         layer3,
	"local ip":                            layer3,
	"bgp":                                 layer3,
	"network l3":                          layer3,
	"network agent add router":            layer3,
	"network agent remove router":         layer3,
	"network agent router":                layer3,
	"default security group":              "the default group of every project begins with the same rules",
	"security group default statefulness": "a group is stateful unless the request says otherwise",
	"address group":                       "rules name addresses or groups",
	"address scope":                       pooled,
	"subnet pool":                         pooled,
	"network onboard":                     pooled,
	"network auto allocated topology":     pooled,
	"network flavor":                      drivers,
	"network service provider":            drivers,
	"network meter":                       drivers,
	"network qos":                         drivers,
	"tap":                                 drivers,
	"network rbac":                        "a network belongs to one project, or to all",
	"network segment":                     "a network has one segment",
}

const (
	layer3  = "berth has no layer-3 services"
	pooled  = "the creator of a subnet chooses its addresses; berth has no subnet pools"
	drivers = "no agent that berth supports provides this service"
)
