package hostile

// validBodies maps each route that reads a body to a valid body that contains every known field.
var validBodies = map[string]string{
	"POST /agent/v1/state":   `{"agent_type":"DHCP agent","host":"cmp-1","binary":"b","topic":"t","configurations":{"a":1}}`,
	"POST /agent/v1/reports": `{"reports":[{"port":"{port}","entity":"L2","host":"elsewhere","event":"lost","revision":1}]}`,

	"POST /journal/v1/runs": `{"kind":"audit","plan":0,"reason":"r"}`,
	"POST /journal/v1/entries": `{"entries":[{"operation":"create","object_type":"router","object_id":"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0077","name":"r","project_id":"demo",` +
		`"data":{"id":"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0077","name":"r","project_id":"demo","tenant_id":"demo"}}]}`,
	"POST /journal/v1/entries/{seq}/skip":                    `{"reason":"r"}`,
	"POST /journal/v1/entries/{seq}/retry":                   `{}`,
	"PUT /operator/v1/blocks/{type}/{id}/{entity}":           `{"host":"fw-1","owner":"o","timeout_seconds":60,"fatal":true}`,
	"POST /operator/v1/blocks/{type}/{id}/{entity}/complete": `{"host":"fw-2"}`,
	"POST /journal/v1/pause":                                 `{"reason":"r"}`,
	"POST /journal/v1/resume":                                `{"reason":"r"}`,

	"POST /operator/v1/consumers/migrate": `{"limit":7}`,
	"POST /operator/v1/agent-tokens":      `{"host":"cmp-1"}`,
	"POST /operator/v1/agent-keys":        `{"host":"cmp-1","public_key":"-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAbIKv1J9G9M6VdSx2YPM6N+JpoLXVhmzAPtgT1e1I9oU=\n-----END PUBLIC KEY-----\n"}`,
	"POST /operator/v1/agent-vhosts":      `{"host":"cmp-2","name":"agents-2","agent_types":["Open vSwitch agent"]}`,
	"POST /operator/v1/policy/check":      `{"api":"placement","rule":"placement:usages","project":"demo","roles":["reader"],"target":{"project_id":"demo"}}`,
	"POST /operator/v1/codec/encode":      `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}]}`,
	"POST /operator/v1/codec/decode":      `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"MQ=="}]}`,
	"POST /operator/v1/notes/retry":       `{"workflow_ids":["port/{port}"]}`,

	"POST /reservation/v1/leases": `{"name":"gold","start_date":"2038-01-01 00:00","end_date":"2038-01-02 00:00","before_end_date":"2038-01-01 12:00","events":[],` +
		`"reservations":[{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":"","before_end":"default"},` +
		`{"resource_type":"virtual:floatingip","network_id":"{outside}","amount":1,"required_floatingips":["172.24.4.10"]}]}`,
	"POST /reservation/v1/plans": `{"name":"gold","start_date":"2036-01-01 00:00","end_date":"2036-01-02 00:00","latest_start":"2036-02-01 00:00",` +
		`"reservations":[{"resource_type":"virtual:instance","vcpus":1,"memory_mb":1,"disk_gb":0,"amount":1,"affinity":true,"resource_properties":""}]}`,
	"PUT /reservation/v1/leases/{id}": `{"name":"silver","start_date":"2037-01-01 00:01","end_date":"2037-01-02 00:01","before_end_date":"2037-01-01 12:00",` +
		`"reservations":[{"id":"{reservation}","min":1,"max":1,"hypervisor_properties":"","resource_properties":"","before_end":"default"}]}`,
	"POST /reservation/v1/os-hosts":                  `{"name":"cmp-9","rack":"r1","gpu":true,"n":5}`,
	"PUT /reservation/v1/os-hosts/{id}":              `{"rack":"r2","gpu":false}`,
	"PATCH /reservation/v1/os-hosts/properties/{id}": `{"private":true}`,
	"POST /reservation/v1/networks":                  `{"network_type":"vlan","physical_network":"physnet9","segment_id":"77","usage_type":"storage"}`,
	"PUT /reservation/v1/networks/{id}":              `{"usage_type":"storage","rack":null}`,
	"PATCH /reservation/v1/networks/properties/{id}": `{"private":true}`,
	"POST /reservation/v1/devices":                   `{"name":"iot-9","device_type":"container","device_driver":"zun","model":"jetson"}`,
	"PUT /reservation/v1/devices/{id}":               `{"model":"jetson","rack":null}`,
	"PATCH /reservation/v1/devices/properties/{id}":  `{"private":true}`,
	"POST /reservation/v1/floatingips":               `{"floating_network_id":"{outside}","floating_ip_address":"172.24.4.20"}`,

	"POST /networking/v2.0/networks": `{"network":{"name":"n","description":"d","project_id":"demo","admin_state_up":true,"shared":false,"router:external":false,"mtu":1400,` +
		`"port_security_enabled":true,"provider:network_type":"vlan","provider:physical_network":"p","provider:segmentation_id":77,"availability_zone_hints":[]}}`,
	"PUT /networking/v2.0/networks/{id}": `{"network":{"name":"n","description":"d","admin_state_up":true,"shared":false,"router:external":false,"mtu":1400,"port_security_enabled":true}}`,
	"POST /networking/v2.0/subnets": `{"subnet":{"network_id":"{network}","ip_version":4,"cidr":"10.7.0.0/24","name":"s","description":"d","project_id":"demo","gateway_ip":"10.7.0.1",` +
		`"allocation_pools":[{"start":"10.7.0.10","end":"10.7.0.20"}],"enable_dhcp":true,"dns_nameservers":["8.8.8.8"],` +
		`"host_routes":[{"destination":"10.9.0.0/24","nexthop":"10.7.0.9"}],"subnetpool_id":null,"service_types":[]}}`,
	"PUT /networking/v2.0/subnets/{id}": `{"subnet":{"name":"s","description":"d","gateway_ip":null,"allocation_pools":[{"start":"10.0.0.10","end":"10.0.3.20"}],"enable_dhcp":true,` +
		`"dns_nameservers":["8.8.8.8"],"host_routes":[{"destination":"10.9.0.0/24","nexthop":"10.0.0.9"}],"service_types":[]}}`,
	"POST /networking/v2.0/ports": `{"port":{"network_id":"{network}","project_id":"demo","name":"p","description":"d","admin_state_up":true,"mac_address":"fa:16:3e:00:00:07",` +
		`"fixed_ips":[{"subnet_id":"{subnet}","ip_address":"10.0.0.77"}],"device_id":"x","device_owner":"compute:nova","port_security_enabled":true,"binding:host_id":"cmp-1",` +
		`"binding:vnic_type":"normal","binding:profile":{"a":{"b":1}},"security_groups":[],"tags":["red"],"allowed_address_pairs":[{"ip_address":"10.1.0.0/16","mac_address":"fa:16:3e:00:00:09"}],"extra_dhcp_opts":[{"opt_name":"mtu","opt_value":"1400","ip_version":4}]}}`,
	"PUT /networking/v2.0/ports/{id}": `{"port":{"name":"p","description":"d","admin_state_up":true,"fixed_ips":[{"subnet_id":"{subnet}","ip_address":"10.0.0.78"}],` +
		`"device_id":"x","device_owner":"compute:nova","port_security_enabled":true,"binding:host_id":"cmp-1","binding:vnic_type":"normal","binding:profile":{"a":1}}}`,
	"POST /networking/v2.0/ports/{id}/bindings":                `{"binding":{"host":"cmp-2","vnic_type":"normal","profile":{"a":1},"project_id":"demo"}}`,
	"PUT /networking/v2.0/ports/{id}/bindings/{host}":          `{"binding":{"vnic_type":"normal","profile":{"a":1}}}`,
	"PUT /networking/v2.0/ports/{id}/bindings/{host}/activate": ``,
	"POST /networking/v2.0/trunks": `{"trunk":{"port_id":"{lone}","project_id":"demo","name":"t","description":"d","admin_state_up":true,` +
		`"sub_ports":[{"port_id":"{single}","segmentation_type":"vlan","segmentation_id":7}]}}`,
	"PUT /networking/v2.0/trunks/{id}":                     `{"trunk":{"name":"t","description":"d","admin_state_up":true}}`,
	"PUT /networking/v2.0/trunks/{id}/add_subports":        `{"sub_ports":[{"port_id":"{single}","segmentation_type":"vlan","segmentation_id":8}]}`,
	"PUT /networking/v2.0/trunks/{id}/remove_subports":     `{"sub_ports":[{"port_id":"{subport}"}]}`,
	"POST /networking/v2.0/security-groups":                `{"security_group":{"name":"g","description":"d","project_id":"demo","stateful":true}}`,
	"PUT /networking/v2.0/security-groups/{id}":            `{"security_group":{"name":"g","description":"d"}}`,
	"POST /networking/v2.0/security-groups/{id}/tags":      `{"tags":["red"]}`,
	"PUT /networking/v2.0/security-groups/{id}/tags":       `{"tags":["red","blue"]}`,
	"PUT /networking/v2.0/security-groups/{id}/tags/{tag}": ``,
	"POST /networking/v2.0/security-group-rules": `{"security_group_rule":{"security_group_id":"{group}","project_id":"demo","direction":"ingress","ethertype":"IPv4","protocol":"tcp",` +
		`"port_range_min":443,"port_range_max":443,"remote_ip_prefix":"10.0.0.0/8","remote_group_id":null,"remote_address_group_id":null,"description":"d"}}`,
	"PUT /networking/v2.0/security-group-rules/{id}":  `{"security_group_rule":{"description":"d"}}`,
	"PUT /networking/v2.0/quotas/{project}":           `{"quota":{"network":1000,"subnet":1000,"port":5000,"security_group":100,"security_group_rule":1000,"trunk":-1,"project_id":"demo"}}`,
	"POST /networking/v2.0/networks/{id}/tags":        `{"tags":["red"]}`,
	"PUT /networking/v2.0/networks/{id}/tags":         `{"tags":["red","blue"]}`,
	"PUT /networking/v2.0/networks/{id}/tags/{tag}":   ``,
	"POST /networking/v2.0/subnets/{id}/tags":         `{"tags":["red"]}`,
	"PUT /networking/v2.0/subnets/{id}/tags":          `{"tags":["red","blue"]}`,
	"PUT /networking/v2.0/subnets/{id}/tags/{tag}":    ``,
	"POST /networking/v2.0/ports/{id}/tags":           `{"tags":["red"]}`,
	"PUT /networking/v2.0/ports/{id}/tags":            `{"tags":["red","blue"]}`,
	"PUT /networking/v2.0/ports/{id}/tags/{tag}":      ``,
	"POST /networking/v2.0/trunks/{id}/tags":          `{"tags":["red"]}`,
	"PUT /networking/v2.0/trunks/{id}/tags":           `{"tags":["red","blue"]}`,
	"PUT /networking/v2.0/trunks/{id}/tags/{tag}":     ``,
	"PUT /networking/v2.0/agents/{id}":                `{"agent":{"admin_state_up":true,"description":"d"}}`,
	"POST /networking/v2.0/agents/{id}/dhcp-networks": `{"network_id":"{network}"}`,

	"POST /placement/resource_providers":                           `{"name":"p9","uuid":"7d3c1c1e-7d1b-4d6a-b6f4-2f2f0c5e0099","parent_provider_uuid":"{provider}"}`,
	"PUT /placement/resource_providers/{uuid}":                     `{"name":"cmp-1","parent_provider_uuid":null}`,
	"POST /placement/resource_providers/{uuid}/inventories":        `{"resource_class":"MEMORY_MB","total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":2.5}`,
	"PUT /placement/resource_providers/{uuid}/inventories":         `{"resource_provider_generation":424242,"inventories":{"VCPU":{"total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":2.5}}}`,
	"PUT /placement/resource_providers/{uuid}/inventories/{class}": `{"resource_provider_generation":424242,"total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":2.5}`,
	"PUT /placement/resource_providers/{uuid}/aggregates":          `{"aggregates":["{zero}"],"resource_provider_generation":424242}`,
	"PUT /placement/resource_providers/{uuid}/traits":              `{"traits":["CUSTOM_GOLD"],"resource_provider_generation":424242}`,
	"POST /placement/allocations":                                  `{"{consumer}":{"allocations":{"{provider}":{"resources":{"VCPU":1}}},"mappings":{"":["{provider}"]},"project_id":"demo","user_id":"u","consumer_generation":434343,"consumer_type":"INSTANCE"}}`,
	"PUT /placement/allocations/{consumer}":                        `{"allocations":{"{provider}":{"resources":{"VCPU":1}}},"mappings":{"":["{provider}"]},"project_id":"demo","user_id":"u","consumer_generation":434343,"consumer_type":"INSTANCE"}`,
	"POST /placement/reshaper": `{"inventories":{"{provider}":{"resource_provider_generation":424242,"inventories":{"VCPU":{"total":8,"reserved":0,"min_unit":1,"max_unit":8,"step_size":1,"allocation_ratio":2.5}}}},` +
		`"allocations":{"{consumer}":{"allocations":{"{provider}":{"resources":{"VCPU":1}}},"mappings":{"":["{provider}"]},"project_id":"demo","user_id":"u","consumer_generation":434343,"consumer_type":"INSTANCE"}}}`,
	"POST /placement/resource_classes":       `{"name":"CUSTOM_OTHER"}`,
	"PUT /placement/resource_classes/{name}": ``,
	"PUT /placement/traits/{name}":           ``,
}
