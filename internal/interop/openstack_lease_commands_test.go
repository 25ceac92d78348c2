package interop

import "slices"

// leaseCommands use every command and option of the openstack client's reservation plug-in, and delete the
// objects that they create. The character ␣ stands for a blank inside an argument; {lease NAME} and similar
// placeholders stand for IDs.
var leaseCommands = slices.Concat(
	resourceCommands,
	hostCommands,
	hostLeaseCommands,
	instanceCommands,
	floatingIPCommands,
	lifecycleCommands,
	flavorCommands,
	hostDeletionCommands,
)

var hostCommands = []commandCase{
	{
		"reservation host create node-1 --extra gpu=True --extra rack=r1 -f value -c id -c hypervisor_hostname -c gpu -c vcpus -c memory_mb -c local_gb -c reservable",
		"Created a new host:|True|node-1|1|100|16384|True|8",
	},
	{"reservation host create node-1", "error: ERROR: Host node-1 is registered already."},
	{"reservation host create nobody", "error: ERROR: Host 'nobody' not found!"},
	{
		"reservation host create node-2 --extra rack=r2 -f json -c rack",
		`Created a new host:|{|  "rack": "r2"|}`,
	},
	{"reservation host create node-3", "has: | hypervisor_hostname | node-3              |"},
	{"reservation host list -f value", "1 node-1 8 16384 100|2 node-2 8 16384 100|3 node-3 8 16384 100"},
	{"reservation host list --sort-by vcpus -f value -c hypervisor_hostname", "node-1|node-2|node-3"},
	{"reservation host list --sort-by age", "error: Invalid sort option age"},
	{"reservation host show 1 -f value -c hypervisor_hostname -c gpu", "True|node-1"},
	{"reservation host show node-2 -f value -c id -c rack", "2|r2"},
	{"reservation host show nobody", "error: Unable to find resource with name 'nobody'"},
	{"reservation host show 99", "error: ERROR: Object with {'host': '99'} not found"},
	{"reservation host set node-2 --extra gpu=False --extra shelf=7", "Updated host: node-2"},
	{"reservation host set 2 --extra shelf=8", "Updated host: 2"},
	{"reservation host set 99 --extra shelf=8", "error: ERROR: Object with {'host': '99'} not found"},
	{"reservation host show 2 -f value -c gpu -c shelf", "False|8"},
	{"reservation host property list -f value", "gpu|rack|shelf"},
	{
		"reservation host property list --detail -f value",
		"gpu False ['False', 'True']|rack False ['r1', 'r2']|shelf False ['8']",
	},
	{"reservation host property set shelf --private", "Updated host property: shelf"},
	{
		"reservation host property set nothing --private",
		"error: ERROR: Object with {'resource_property': 'nothing'} not found",
	},
	{"reservation host property list -f value -c property", "gpu|rack"},
	{"reservation host property list --all --sort-by property -f value -c property", "gpu|rack|shelf"},
	{"reservation host property set shelf --public", "Updated host property: shelf"},
	{
		"reservation host property show gpu -f json",
		`{|  "private": false,|  "property": "gpu",|  "property_values": [|    "False",|    "True"|  ]|}`,
	},
	{"reservation host property show nothing", "error: "},
}

var hostLeaseCommands = []commandCase{
	{"reservation lease create none --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00", "error: "},
	{
		`reservation lease create night --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --before-end-date 2040-01-01␣11:30 --event event_type=foo,event_date=2040-01-01␣11:00 --reservation resource_type=physical:host,min=1,max=2,hypervisor_properties=[">=","$vcpus","2"],resource_properties=["=","$rack","r1"],before_end=snapshot -f value -c name -c start_date -c end_date -c status -c degraded -c trust_id`,
		"Created a new lease:|False|2040-01-01T12:00:00.000000|night|2040-01-01T10:00:00.000000|PENDING",
	},
	{
		"reservation lease create late --start-date 2040-01-01␣12:00 --end-date 2040-01-01␣14:00 --reservation resource_type=physical:host,min=3,max=3 -f value -c status",
		"Created a new lease:|PENDING",
	},
	{
		"reservation lease create full --start-date 2040-01-01␣13:00 --end-date 2040-01-01␣14:00 --reservation resource_type=physical:host,min=1,max=1",
		"error: ERROR: Not enough hosts available",
	},
	{
		"reservation lease create past --start-date 2020-01-01␣13:00 --end-date 2040-01-01␣14:00 --reservation resource_type=physical:host,min=1,max=1",
		"error: ERROR: Start date must be later than current date.",
	},
	{
		"reservation lease create never --start-date 2040-01-01␣13:00 --end-date 2040-01-01␣13:00 --reservation resource_type=physical:host,min=1,max=1",
		"error: ERROR: End date must be later than start date.",
	},
	{
		"reservation lease create odd --start-date 2040-01-01␣13:00 --end-date 2040-01-01␣14:00 --reservation resource_type=physical:moon,min=1,max=1",
		"error: ",
	},
	{
		"reservation lease create odd --start-date 2040-01-01␣13:00 --end-date 2040-01-01␣14:00 --reservation resource_type=physical:host,min=2,max=1",
		"error: ERROR: Invalid range: max 1 is less than min 2.",
	},
	{
		`reservation lease create odd --start-date 2041-01-01␣13:00 --end-date 2041-01-01␣14:00 --reservation resource_type=physical:host,min=1,max=1,resource_properties=["~","$rack","r1"]`,
		`error: ERROR: Malformed requirements "[\"~\",\"$rack\",\"r1\"]"`,
	},
	{
		`reservation lease create odd --start-date 2041-01-01␣13:00 --end-date 2041-01-01␣14:00 --reservation resource_type=physical:host,min=1,max=1,resource_properties=["=","$nothing","r1"]`,
		`error: ERROR: No host has the property "nothing".`,
	},
	{
		"reservation lease list -f value -c name -c start_date -c end_date",
		"late 2040-01-01T12:00:00.000000 2040-01-01T14:00:00.000000|night 2040-01-01T10:00:00.000000 2040-01-01T12:00:00.000000",
	},
	{"reservation lease list --sort-by start_date -f value -c name", "night|late"},
	{"reservation lease list --sort-by age", "error: Invalid sort option age"},
	{
		"reservation lease show night -f value -c name -c status -c start_date",
		"night|2040-01-01T10:00:00.000000|PENDING",
	},
	{
		"reservation lease show {lease night} -f value -c events",
		`has:     "time": "2040-01-01T11:30:00.000000",`,
	},
	{
		"reservation lease show night -f value -c reservations",
		`has:     "resource_properties": "[\"=\",\"$rack\",\"r1\"]",|    "before_end": "snapshot",|    "min": 1,|    "max": 2|}`,
	},
	{"reservation lease show nobody", "error: Unable to find resource with name 'nobody'"},
	{
		"reservation lease show 00000000-0000-4000-8000-000000000000",
		"error: ERROR: Object with {'lease_id': '00000000-0000-4000-8000-000000000000'} not found",
	},
	{"reservation lease set night --name nights", "Updated lease: night"},
	{"reservation lease set nights", "Updated lease: nights"},
	{"reservation lease set nights --reduce-by 30m", "Updated lease: nights"},
	{"reservation lease set nights --prolong-for 10m", "Updated lease: nights"},
	{"reservation lease set nights --defer-by 5m", "Updated lease: nights"},
	{"reservation lease set nights --advance-by 1h", "Updated lease: nights"},
	{
		"reservation lease show nights -f value -c start_date -c end_date",
		"2040-01-01T11:40:00.000000|2040-01-01T09:05:00.000000",
	},
	{
		"reservation lease set nights --start-date 2040-01-01␣09:00 --end-date 2040-01-01␣12:00",
		"Updated lease: nights",
	},
	{"reservation lease set nights --prolong-for 2h", "error: ERROR: Not enough hosts available"},
	{
		"reservation lease set nights --end-date 2040-01-01␣08:00",
		"error: ERROR: End date must be later than current and start date.",
	},
	{"reservation lease set nights --prolong-for 3x", "error: Invalid time format for option."},
	{
		"reservation host set node-1 --extra rack=r9",
		"error: ERROR: Capability rack of host 1 cannot change: a reservation requires it.",
	},
	{
		`reservation lease set nights --reservation id={reservation nights},min=1,max=3,resource_properties=["!=","$rack","r9"]`,
		"Updated lease: nights",
	},
	{
		"reservation lease set nights --reservation id={reservation nights},min=9,max=9",
		"error: ERROR: Not enough hosts available",
	},
	{
		"reservation lease set nights --reservation id={lease nights},min=1,max=1",
		"error: ERROR: Please enter valid reservation IDs: ",
	},
	{
		"reservation lease show nights -f value -c reservations",
		`has:     "resource_properties": "[\"!=\",\"$rack\",\"r9\"]",|    "before_end": "snapshot",|    "min": 1,|    "max": 3|}`,
	},
	{
		"reservation allocation list host -f value",
		"has: 2 [{'id': '#', 'lease_id': '#', 'start_date': '2040-01-01T12:00:00.000000', 'end_date': '2040-01-01T14:00:00.000000'}]",
	},
	{
		"reservation allocation show host node-2 -f value",
		`has:     "start_date": "2040-01-01T12:00:00.000000",|    "end_date": "2040-01-01T14:00:00.000000"|}|2`,
	},
	{"reservation host delete node-1", "error: ERROR: Host node-1 is reserved and cannot be deleted."},
	{"reservation lease delete nights", "Deleted lease: nights"},
	{"reservation lease delete {lease late}", "Deleted lease: #"},
	{"reservation lease delete late", "error: Unable to find resource with name 'late'"},
}

var instanceCommands = []commandCase{
	{
		"reservation lease create flock --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --reservation resource_type=virtual:instance,vcpus=2,memory_mb=512,disk_gb=10,amount=2,affinity=False --reservation resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=10,amount=1 -f value -c status",
		"Created a new lease:|PENDING",
	},
	{
		"reservation lease show flock -f value -c reservations",
		`has:     "affinity": false,|    "resource_properties": "",|    "flavor_id": "#",|    "aggregate_id": null,|    "server_group_id": null|}`,
	},
	{
		"reservation lease set flock --reservation id={reservation flock},amount=3,vcpus=4",
		"Updated lease: flock",
	},
	{
		"reservation lease create flocks --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --reservation resource_type=virtual:instance,vcpus=8,memory_mb=512,disk_gb=10,amount=1",
		"error: ERROR: Not enough hosts available",
	},
	{
		"reservation lease create flocks --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --reservation resource_type=virtual:instance,vcpus=8,memory_mb=512,disk_gb=10",
		"error: ERROR: Malformed parameter amount: it must be an integer.",
	},
	{"reservation lease delete flock", "Deleted lease: flock"},
}

var floatingIPCommands = []commandCase{
	{
		"reservation floatingip create {sea} 10.20.0.10 -f value -c floating_ip_address -c floating_network_id -c reservable",
		"Created a new floatingip:|10.20.0.10|#|True",
	},
	{
		"reservation floatingip create {sea} 10.20.0.11 -f json -c floating_ip_address",
		`Created a new floatingip:|{|  "floating_ip_address": "10.20.0.11"|}`,
	},
	{
		"reservation floatingip create {sea} 10.20.0.11",
		"error: ERROR: The floating IP 10.20.0.11 is registered already.",
	},
	{
		"reservation floatingip create {sea} 10.20.0.150",
		"error: ERROR: The floating IP 10.20.0.150 is in an allocation pool of its subnet, so Neutron could give it to a port.",
	},
	{"reservation floatingip create {sea} sea", "error: ERROR: sea is not a valid IP address."},
	{"reservation floatingip list --sort-by floating_ip_address -f value", "# 10.20.0.10 #|# 10.20.0.11 #"},
	{"reservation floatingip show {address 10.20.0.10} -f value -c floating_ip_address", "10.20.0.10"},
	{"reservation floatingip show {sea}", "error: ERROR: Object with {'floatingip': '"},
	{
		`reservation lease create port --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --reservation resource_type=virtual:floatingip,network_id={sea},amount=2,required_floatingips=["10.20.0.11"] -f value -c reservations`,
		`has:     "amount": 2,|    "required_floatingips": [|        "10.20.0.11"|    ]|}`,
	},
	{
		"reservation lease create ports --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 --reservation resource_type=virtual:floatingip,network_id={sea}",
		"error: ERROR: Not enough floating IPs available",
	},
	{"reservation floatingip delete {address 10.20.0.11}", "error: is reserved and cannot be deleted."},
	{
		"reservation lease set port --reservation id={reservation port},amount=1,required_floatingips=[]",
		"Updated lease: port",
	},
	{"reservation lease delete port", "Deleted lease: port"},
	{"reservation floatingip delete {address 10.20.0.10}", "Deleted floatingip: #"},
	{"reservation floatingip delete {address 10.20.0.11}", "Deleted floatingip: #"},
}

// resourceCommands change a lease of a network segment and a device. The test creates this lease itself,
// because the client cannot parse the fields of the lease's reservations.
var resourceCommands = []commandCase{
	{"reservation lease show lab -f value -c reservations", `has:     "network_name": "lab",`},
	{"reservation lease set lab --prolong-for 1h", "Updated lease: lab"},
	{"reservation lease show lab -f value -c end_date", "2040-01-01T13:00:00.000000"},
	{"reservation lease delete lab", "Deleted lease: lab"},
}

var lifecycleCommands = []commandCase{
	{
		"reservation lease create today --reservation resource_type=physical:host,min=1,max=1 -f value -c name",
		"Created a new lease:|today",
	},
	{"reservation lease show today -f value -c status", "until: ACTIVE"},
	{
		"reservation lease set today --defer-by 1h",
		"error: ERROR: Cannot modify the start date of already started leases.",
	},
	{"reservation lease set today --prolong-for 1h", "Updated lease: today"},
	{
		"reservation lease create soon --reservation resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=10,amount=2,affinity=True -f value -c name",
		"Created a new lease:|soon",
	},
	{"reservation lease show soon -f value -c status", "until: ACTIVE"},
	{
		"reservation lease set soon --reservation id={reservation soon},vcpus=2",
		"error: ERROR: Only the amount of an active reservation of instances can be updated.",
	},
	{"reservation lease set soon --reservation id={reservation soon},amount=3", "Updated lease: soon"},
	{"reservation lease delete soon", "Deleted lease: soon"},
	{"reservation lease delete today", "Deleted lease: today"},
}

// flavorCommands are for clients that have the allocation commands. A client without the allocation commands
// refuses the commands in flavorCommands with an error about flavors and sends no request.
var flavorCommands = []commandCase{
	{
		"reservation lease create gilt --reservation resource_type=flavor:instance,flavor_id=gold,amount=1,affinity=None -f value -c name",
		"Created a new lease:|gilt",
	},
	{"reservation lease show gilt -f value -c status", "until: ACTIVE"},
	{
		"reservation lease show gilt -f value -c reservations",
		`has:     "vcpus": 2,|    "memory_mb": 1024,|    "disk_gb": 5,|    "amount": 1,|    "affinity": null,`,
	},
	{
		"reservation lease create gilts --reservation resource_type=flavor:instance,flavor_id=gold,amount=1,affinity=True",
		"error: ERROR: A reservation of the type flavor:instance cannot have an affinity.",
	},
	{
		"reservation lease create gilts --reservation resource_type=flavor:instance,flavor_id=lead,amount=1",
		"error: ERROR: Flavor lead could not be found.",
	},
	{"reservation lease delete gilt", "Deleted lease: gilt"},
}

var hostDeletionCommands = []commandCase{
	{"reservation host delete node-1", "Deleted host: node-1"},
	{"reservation host delete 2", "Deleted host: 2"},
	{"reservation host delete node-3", "Deleted host: node-3"},
	{"reservation host delete node-3", "error: Unable to find resource with name 'node-3'"},
	{"reservation host list -f value", ""},
}

// blazarCommands send some of the requests of leaseCommands with the program blazar, which older packages of
// the client contain.
var blazarCommands = []commandCase{
	{"host-create node-1 --extra gpu=True -f value -c gpu", "Created a new host:|True"},
	{"host-list -f value -c hypervisor_hostname", "node-1"},
	{"host-update node-1 --extra gpu=False", "Updated host: node-1"},
	{"host-show node-1 -f value -c gpu", "False"},
	{"host-property-list -f value -c property", "has: gpu"},
	{"host-property-set gpu --private", "Updated host property: gpu"},
	{"host-property-set gpu --public", "Updated host property: gpu"},
	{"host-property-show gpu -f value -c property", "gpu"},
	{
		`lease-create --physical-reservation min=1,max=1,hypervisor_properties=["=","$hypervisor_hostname","node-1"] --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 old -f value -c name`,
		"Created a new lease:|old",
	},
	{"lease-list -f value -c name", "old"},
	{"lease-show old -f value -c status", "PENDING"},
	{"lease-update old --prolong-for 1h", "Updated lease: old"},
	{
		"lease-create --physical-reservation min=1,max=1 --start-date 2040-01-01␣10:00 --end-date 2040-01-01␣12:00 older",
		"error: ERROR: Not enough hosts available",
	},
	{"lease-delete old", "Deleted lease: old"},
	{
		"floatingip-create {sea} 10.20.0.10 -f value -c floating_ip_address",
		"Created a new floatingip:|10.20.0.10",
	},
	{"floatingip-list -f value -c floating_ip_address", "10.20.0.10"},
	{"floatingip-show {address 10.20.0.10} -f value -c reservable", "True"},
	{"floatingip-delete {address 10.20.0.10}", "Deleted floatingip: #"},
	{"host-delete node-1", "Deleted host: node-1"},
}
