
	select port.id, port.network_id, port.project, port.name, port.description, port.admin_up, port.mac::text, port.device_id,
		port.device_owner, port.status, port.host, port.vnic, port.profile, port.vif, port.port_security, port.ignored_reports,
		port.revision, port.binding_revision, port.vif_details, port.switch,
		coalesce(nullif(port.project, ''), (select n.project from network n where n.id = port.network_id)), (select n.type from network n where n.id = port.network_id), port.created_at, port.updated_at, port.tags, port.address_pairs, port.dhcp_options, port.security_groups,
		(select coalesce(jsonb_agg(jsonb_build_object('subnet', a.subnet_id, 'ip', host(a.address)) order by a.position), '[]')
			from port_address a
			where a.port_id = port.id),
		(select coalesce(jsonb_agg(to_jsonb(b) || 
				case b.entity
				when 'L2' then (select jsonb_build_object('hosts', coalesce(jsonb_agg(a.host order by a.host), '[]'), 'orphan', count(*) = 0, 'disabled', coalesce(bool_and(not a.admin_up), false),
						'heard', case when max(a.heartbeat_at) < clock_timestamp() - interval '75 seconds' then max(a.heartbeat_at) end) from agent a where a.host = b.host and a.agent_type = case when port.vif_details is not null then 'ODL L2' when port.vif = 'hw_veb' then 'NIC Switch agent' when port.vif = 'macvtap' then 'Macvtap agent' when port.vif = 'ovs' then 'Open vSwitch agent' when port.vif = 'vhostuser' then 'Open vSwitch agent' end)
				when 'DHCP' then (select jsonb_build_object('hosts', coalesce(jsonb_agg(a.host order by a.host), '[]'), 'orphan', count(*) = 0, 'disabled', coalesce(bool_and(not a.admin_up), false),
						'heard', case when max(a.heartbeat_at) < clock_timestamp() - interval '75 seconds' then max(a.heartbeat_at) end) from dhcp_binding d join agent a on a.id = d.agent_id where d.network_id = port.network_id and (a.configurations -> 'notifies_port_ready' is distinct from 'false'))
				else '{}' end order by b.entity), '[]')
			from block b
			where b.object_id = port.id),
		(select coalesce(jsonb_agg(to_jsonb(t) order by t.host), '[]')
			from port_binding t
			where t.port_id = port.id),
		case when port.status = 'ACTIVE' and port.vif not in ('distributed', 'hostdev_physical') then (select jsonb_build_object('orphan', count(*) = 0, 'heard', case when max(a.heartbeat_at) < clock_timestamp() - interval '75 seconds' then max(a.heartbeat_at) end) from agent a where a.host = port.host and a.agent_type = case when port.vif_details is not null then 'ODL L2' when port.vif = 'hw_veb' then 'NIC Switch agent' when port.vif = 'macvtap' then 'Macvtap agent' when port.vif = 'ovs' then 'Open vSwitch agent' when port.vif = 'vhostuser' then 'Open vSwitch agent' end) end
	from port;
