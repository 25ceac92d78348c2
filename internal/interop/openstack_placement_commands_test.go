package interop

import "slices"

// placementCommands use every command of the openstack client's placement plug-in, and delete the objects
// that they create. In the commands, {P} stands for the UUID of a host's resource provider, and {C} for the
// UUID of a child provider of {P}. {Q} stands for the UUID of a resource provider in the aggregates {A} and
// {B}. {U} and {V} stand for the UUIDs of consumers. {v} stands for the microversion and makes names unique;
// {owner} stands for the options with the project, user and type of the consumers.
var placementCommands = slices.Concat(
	providerCommands,
	inventoryCommands,
	aggregateCommands,
	allocationsTold,
	traitCommands,
	filterCommands,
	candidateCommands,
	resourceClassCommands,
	cleanupCommands,
)

var providerCommands = []versionedCommand{
	{
		line: "resource provider create --uuid {P} host_{v}",
		want: `{"uuid":"{P}","name":"host_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null}`,
	},
	{
		line: "resource provider create host_{v}",
		want: "error: Conflicting resource provider name: host_{v} already exists. (HTTP 409)",
	},
	{
		line: "resource provider create --uuid {P} other_{v}",
		want: "error: Conflicting resource provider uuid: {P} already exists. (HTTP 409)",
	},
	{
		line: "resource provider set {P} --name node_{v}",
		want: `{"uuid":"{P}","name":"node_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null}`,
	},
	{
		line: "resource provider set {Q} --name node_{v}",
		want: "error: No resource provider with uuid {Q} found",
	},
	{
		line: "resource provider show {P}",
		want: `{"uuid":"{P}","name":"node_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null}`,
	},
	{line: "resource provider show {Q}", want: "error: No resource provider with uuid {Q} found"},
	{
		line: "resource provider list",
		want: `[{"uuid":"{P}","name":"node_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null}]`,
	},
	{line: "resource provider list --name nobody", want: `[]`},
	{
		line: "resource provider list --name node_{v} --uuid {P}",
		want: `[{"uuid":"{P}","name":"node_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null}]`,
	},
	{
		from: 14,
		line: "resource provider create --uuid {C} --parent-provider {P} child_{v}",
		want: `{"uuid":"{C}","name":"child_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":"{P}"}`,
	},
	{
		from: 14,
		line: "resource provider list --in-tree {C}",
		want: `[{"uuid":"{P}","name":"node_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":null},
		{"uuid":"{C}","name":"child_{v}","generation":0,"root_provider_uuid":"{P}","parent_provider_uuid":"{P}"}]`,
	},
	{
		from: 14,
		line: "resource provider delete {P}",
		want: "error: Unable to delete parent resource provider {P}: It has child resource providers. (HTTP 409)",
	},
	{
		from: 14,
		line: "resource provider set {P} --name node_{v} --parent-provider {C}",
		want: "error: creating loop in the provider tree is not allowed. (HTTP 400)",
	},
	{
		line: "resource provider create --uuid {Q} shelf_{v}",
		want: `{"uuid":"{Q}","name":"shelf_{v}","generation":0,"root_provider_uuid":"{Q}","parent_provider_uuid":null}`,
	},
	{
		from:  14,
		until: 36,
		line:  "resource provider set {C} --name child_{v} --parent-provider {Q}",
		want:  "error: re-parenting a provider is not currently allowed. (HTTP 400)",
	},
	{
		from: 37,
		line: "resource provider set {C} --name child_{v} --parent-provider {Q}",
		want: `{"uuid":"{C}","name":"child_{v}","generation":0,"root_provider_uuid":"{Q}","parent_provider_uuid":"{Q}"}`,
	},
	{from: 14, line: "resource provider delete {C}"},
}

var inventoryCommands = []versionedCommand{
	{
		line: "resource provider inventory set {P} --resource VCPU=8 --resource VCPU:max_unit=4 --resource MEMORY_MB=1024",
		want: `[
		{"resource_class":"VCPU","total":8,"reserved":0,"min_unit":1,"max_unit":4,"step_size":1,"allocation_ratio":1.0},
		{"resource_class":"MEMORY_MB","total":1024,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}]`,
	},
	{
		line: "resource provider inventory class set {P} VCPU --total 16 --reserved 2 --allocation_ratio 2.5",
		want: `{"total":16,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":2.5}`,
	},
	{
		line: "resource provider inventory class set {P} DISK_GB --total 16",
		want: "error: No inventory of class DISK_GB found. (HTTP 400)",
	},
	{
		line: "resource provider inventory class set {P} CUSTOM_NONE --total 16",
		want: "error: No such resource class CUSTOM_NONE. (HTTP 404)",
	},
	{
		until: 25,
		line:  "resource provider inventory set {Q} --resource VCPU=2 --resource VCPU:reserved=2",
		want:  "error: The reserved value is greater than or equal to total. (HTTP 400)",
	},
	{
		from: 26,
		line: "resource provider inventory set {Q} --resource VCPU=2 --resource VCPU:reserved=2",
		want: `[{"resource_class":"VCPU","total":2,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}]`,
	},
	{
		line: "resource provider inventory set {Q} --resource CUSTOM_NONE=2",
		want: "error: No such resource class CUSTOM_NONE. (HTTP 400)",
	},
	{line: "resource provider inventory set {P} --amend --dry-run --resource VCPU:total=17", want: `[
		{"resource_class":"VCPU","total":17,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":2.5},
		{"resource_class":"MEMORY_MB","total":1024,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}]`},
	{
		line: "resource provider inventory set {P} --amend --resource DISK_GB=100 --resource VCPU:allocation_ratio=1",
		want: `[
		{"resource_class":"VCPU","total":16,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0},
		{"resource_class":"DISK_GB","total":100,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0},
		{"resource_class":"MEMORY_MB","total":1024,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}]`,
	},
	{line: "resource provider inventory delete {P} --resource-class DISK_GB"},
	{
		line: "resource provider inventory delete {P} --resource-class DISK_GB",
		want: "error: No inventory of class DISK_GB found for delete",
	},
	{line: "resource provider inventory list {P}", want: `[
		{"resource_class":"VCPU","total":16,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0,"used":0},
		{"resource_class":"MEMORY_MB","total":1024,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0,"used":0}]`},
	{
		line: "resource provider inventory show {P} DISK_GB",
		want: "error: No inventory of class DISK_GB for {P} (HTTP 404)",
	},
	{
		line: "resource provider usage show {P}",
		want: `[{"resource_class":"VCPU","usage":0},{"resource_class":"MEMORY_MB","usage":0}]`,
	},
	{line: "resource provider usage show {V}", want: "error: No resource provider with uuid {V} found"},
}

var aggregateCommands = []versionedCommand{
	{from: 1, line: "resource provider aggregate list {Q}", want: `[]`},
	{
		from:  1,
		until: 18,
		line:  "resource provider aggregate set {Q} --aggregate {A} --aggregate {B}",
		want:  `[{"uuid":"{A}"},{"uuid":"{B}"}]`,
	},
	{
		from:  19,
		until: 25,
		line:  "resource provider aggregate set {Q} --aggregate {A} --aggregate {B} --generation 0",
		want:  `[{"uuid":"{A}"},{"uuid":"{B}"}]`,
	},
	{
		from: 26,
		line: "resource provider aggregate set {Q} --aggregate {A} --aggregate {B} --generation 1",
		want: `[{"uuid":"{A}"},{"uuid":"{B}"}]`,
	},
	{
		from: 19,
		line: "resource provider aggregate set {Q} --aggregate {A} --generation 0",
		want: "error: Resource provider's generation already changed. Please update the generation and try again. (HTTP 409)",
	},
	{from: 1, line: "resource provider aggregate list {Q}", want: `[{"uuid":"{A}"},{"uuid":"{B}"}]`},
	{
		from:  1,
		until: 18,
		line:  "resource provider show {Q}",
		want:  `{"uuid":"{Q}","name":"shelf_{v}","generation":0,"root_provider_uuid":"{Q}","parent_provider_uuid":null}`,
	},
	{
		from:  19,
		until: 25,
		line:  "resource provider show {Q}",
		want:  `{"uuid":"{Q}","name":"shelf_{v}","generation":1,"root_provider_uuid":"{Q}","parent_provider_uuid":null}`,
	},
	{
		from: 26,
		line: "resource provider show {Q}",
		want: `{"uuid":"{Q}","name":"shelf_{v}","generation":2,"root_provider_uuid":"{Q}","parent_provider_uuid":null}`,
	},
}

var allocationsTold = []versionedCommand{
	{line: "resource provider allocation show {U}", want: `[]`},
	{
		line: "resource provider allocation set {U} {owner} --allocation rp={P},VCPU=2,MEMORY_MB=512",
		want: `[{"resource_provider":"{P}","generation":5,"resources":{"VCPU":2,"MEMORY_MB":512},
		"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{
		line: "resource provider allocation set {U} {owner} --allocation rp={P},VCPU=4,MEMORY_MB=256",
		want: `[{"resource_provider":"{P}","generation":6,"resources":{"VCPU":4,"MEMORY_MB":256},
		"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{
		line: "resource provider allocation show {U}",
		want: `[{"resource_provider":"{P}","generation":6,"resources":{"VCPU":4,"MEMORY_MB":256},"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{
		line: "resource provider allocation set {V} {owner} --allocation rp={P},VCPU=11",
		want: "error: Unable to create allocation for 'VCPU' on resource provider '{P}'. The requested amount would exceed the capacity. (HTTP 409)",
	},
	{
		line: "resource provider allocation set {V} {owner} --allocation rp={A},VCPU=1",
		want: "error: Allocation for resource provider '{A}' that does not exist. (HTTP 400)",
	},
	{
		line: "resource provider allocation set {V} {owner} --allocation rp={P},DISK_GB=1",
		want: "error: Inventory for 'DISK_GB' on resource provider '{P}' invalid. (HTTP 409)",
	},
	{
		until: 27,
		line:  "resource provider show {P} --allocations",
		want: `{"uuid":"{P}","name":"node_{v}","generation":6,"root_provider_uuid":"{P}","parent_provider_uuid":null,
		"allocations":{"{U}":{"resources":{"VCPU":4,"MEMORY_MB":256}}}}`,
	},
	{
		from: 28,
		line: "resource provider show {P} --allocations",
		want: `{"uuid":"{P}","name":"node_{v}","generation":6,"root_provider_uuid":"{P}","parent_provider_uuid":null,
		"allocations":{"{U}":{"resources":{"VCPU":4,"MEMORY_MB":256},"consumer_generation":2}}}`,
	},
	{
		line: "resource provider usage show {P}",
		want: `[{"resource_class":"VCPU","usage":4},{"resource_class":"MEMORY_MB","usage":256}]`,
	},
	{
		line: "resource provider inventory show {P} VCPU",
		want: `{"total":16,"reserved":2,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0,"used":4}`,
	},
	{
		from:  9,
		until: 37,
		line:  "resource usage show prj_{v}",
		want:  `[{"resource_class":"VCPU","usage":4},{"resource_class":"MEMORY_MB","usage":256}]`,
	},
	{
		from:  9,
		until: 37,
		line:  "resource usage show prj_{v} --user-id usr_{v}",
		want:  `[{"resource_class":"VCPU","usage":4},{"resource_class":"MEMORY_MB","usage":256}]`,
	},
	{
		from: 38,
		line: "resource usage show prj_{v} --user-id usr_{v}",
		want: `[{"resource_class":"INSTANCE","usage":{"VCPU":4,"MEMORY_MB":256,"consumer_count":1}}]`,
	},
	{from: 9, line: "resource usage show prj_{v} --user-id nobody", want: `[]`},
	{
		line: "resource provider delete {P}",
		want: "error: Unable to delete resource provider {P}: Resource provider has allocations. (HTTP 409)",
	},
	{
		line: "resource provider inventory delete {P} --resource-class VCPU",
		want: "error: Inventory for 'VCPU' on resource provider '{P}' in use. (HTTP 409)",
	},
	{
		from: 5,
		line: "resource provider inventory delete {P}",
		want: "error: Inventory for 'VCPU, MEMORY_MB' on resource provider '{P}' in use. (HTTP 409)",
	},
	{
		line: "resource provider inventory set {P} --resource MEMORY_MB=1024",
		want: "error: Inventory for 'VCPU' on resource provider '{P}' in use. (HTTP 409)",
	},
	{
		from: 12,
		line: "resource provider allocation unset {U} --resource-class MEMORY_MB",
		want: `[{"resource_provider":"{P}","generation":7,"resources":{"VCPU":4},"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{from: 12, line: "resource provider allocation unset {U} --provider {P}", want: `[]`},
	{
		from:  12,
		until: 27,
		line:  "resource provider allocation set {U} {owner} --allocation rp={P},VCPU=1 --allocation rp={P},MEMORY_MB=1",
		want: `[{"resource_provider":"{P}","generation":8,
		"resources":{"VCPU":1,"MEMORY_MB":1},"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{
		from: 28,
		line: "resource provider allocation set {U} {owner} --allocation rp={P},VCPU=1 --allocation rp={P},MEMORY_MB=1",
		want: `[{"resource_provider":"{P}","generation":9,
		"resources":{"VCPU":1,"MEMORY_MB":1},"project_id":"prj_{v}","user_id":"usr_{v}","consumer_type":"INSTANCE"}]`,
	},
	{line: "resource provider allocation delete {U}"},
	{
		line: "resource provider allocation delete {U}",
		want: "error: No allocations for consumer '{U}' (HTTP 404)",
	},
	{line: "resource provider allocation show {U}", want: `[]`},
}

var traitCommands = []versionedCommand{
	{from: 6, line: "trait create CUSTOM_T_{v}"},
	{from: 6, line: "trait create CUSTOM_T_{v}"},
	{
		from: 6,
		line: "trait create T_{v}",
		want: "error: start with the prefix \"CUSTOM_\" and use following characters",
	},
	{from: 6, line: "trait show CUSTOM_T_{v}", want: `{"name":"CUSTOM_T_{v}"}`},
	{from: 6, line: "trait show CUSTOM_NONE", want: "error: No such trait(s): CUSTOM_NONE. (HTTP 404)"},
	{from: 6, line: "trait list", want: `has: {"name":"HW_CPU_X86_AVX"}`},
	{from: 6, line: "trait list --name startswith:CUSTOM", want: `[{"name":"CUSTOM_T_{v}"}]`},
	{
		from: 6,
		line: "trait list --name in:HW_CPU_X86_AVX,CUSTOM_T_{v},NONE",
		want: `[{"name":"CUSTOM_T_{v}"},{"name":"HW_CPU_X86_AVX"}]`,
	},
	{from: 6, line: "trait list --associated", want: `[]`},
	{
		from: 6,
		line: "resource provider trait set {P} --trait CUSTOM_T_{v} --trait HW_CPU_X86_AVX",
		want: `[{"name":"CUSTOM_T_{v}"},{"name":"HW_CPU_X86_AVX"}]`,
	},
	{
		from: 6,
		line: "resource provider trait set {P} --trait CUSTOM_NONE",
		want: "error: No such trait CUSTOM_NONE (HTTP 400)",
	},
	{
		from: 6,
		line: "resource provider trait list {P}",
		want: `[{"name":"CUSTOM_T_{v}"},{"name":"HW_CPU_X86_AVX"}]`,
	},
	{
		from: 6,
		line: "resource provider trait list {V}",
		want: "error: No resource provider with uuid {V} found",
	},
	{from: 6, line: "trait list --associated", want: `[{"name":"CUSTOM_T_{v}"},{"name":"HW_CPU_X86_AVX"}]`},
	{
		from: 6,
		line: "trait delete CUSTOM_T_{v}",
		want: "error: The trait CUSTOM_T_{v} is in use by a resource provider. (HTTP 409)",
	},
	{
		from: 6,
		line: "trait delete HW_CPU_X86_AVX",
		want: "error: Cannot delete standard trait HW_CPU_X86_AVX. (HTTP 400)",
	},
}

var resourceClassCommands = []versionedCommand{
	{from: 2, line: "resource class create CUSTOM_C_{v}"},
	{
		from: 2,
		line: "resource class create CUSTOM_C_{v}",
		want: "error: Conflicting resource class already exists: CUSTOM_C_{v} (HTTP 409)",
	},
	{from: 2, line: "resource class create C_{v}", want: "error: (HTTP 400)"},
	{from: 7, line: "resource class set CUSTOM_C_{v}"},
	{from: 7, line: "resource class set CUSTOM_D_{v}"},
	{from: 2, line: "resource class show CUSTOM_C_{v}", want: `{"name":"CUSTOM_C_{v}"}`},
	{
		from: 2,
		line: "resource class show CUSTOM_NONE",
		want: "error: No such resource class CUSTOM_NONE. (HTTP 404)",
	},
	{from: 2, line: "resource class list", want: `has: {"name":"CUSTOM_C_{v}"}`},
	{from: 2, line: "resource class list", want: `has: {"name":"VCPU"}`},
	{
		from: 2,
		line: "resource provider inventory set {P} --amend --resource CUSTOM_C_{v}=3",
		want: `has: {"resource_class":"CUSTOM_C_{v}","total":3,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}`,
	},
	{
		from: 2,
		line: "resource class delete CUSTOM_C_{v}",
		want: "error: Cannot delete resource class CUSTOM_C_{v}. Class is in use in inventory. (HTTP 409)",
	},
	{
		from: 2,
		line: "resource class delete VCPU",
		want: "error: Cannot delete standard resource class VCPU. (HTTP 400)",
	},
	{from: 2, line: "resource provider inventory delete {P} --resource-class CUSTOM_C_{v}"},
	{from: 2, line: "resource class delete CUSTOM_C_{v}"},
	{from: 7, line: "resource class delete CUSTOM_D_{v}"},
	{
		from: 2,
		line: "resource class delete CUSTOM_C_{v}",
		want: "error: No such resource class CUSTOM_C_{v}. (HTTP 404)",
	},
}

var filterCommands = []versionedCommand{
	{from: 3, line: "resource provider list --member-of {A} -c uuid", want: `[{"uuid":"{Q}"}]`},
	{from: 3, line: "resource provider list --member-of {U},{B} -c uuid", want: `[{"uuid":"{Q}"}]`},
	{from: 3, line: "resource provider list --member-of {U} -c uuid", want: `[]`},
	{
		from:  3,
		until: 23,
		line:  "resource provider list --member-of {A} --member-of {B}",
		want:  "error: Multiple member_of parameters are not supported (HTTP 400)",
	},
	{
		from: 24,
		line: "resource provider list --member-of {A} --member-of {B} -c uuid",
		want: `[{"uuid":"{Q}"}]`,
	},
	{from: 24, line: "resource provider list --member-of {A} --member-of {U} -c uuid", want: `[]`},
	{from: 3, line: "resource provider inventory set {A} --aggregate --resource DISK_GB=10", want: `[
		{"resource_provider":"{Q}","resource_class":"DISK_GB","total":10,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}]`},
	{
		from: 3,
		line: "resource provider inventory set {U} --aggregate --resource DISK_GB=10",
		want: "error: No resource providers found in aggregate with uuid {U}",
	},
	{
		from: 4,
		line: "resource provider list --resource VCPU=2 --resource MEMORY_MB=512 -c uuid",
		want: `[{"uuid":"{P}"}]`,
	},
	{from: 4, line: "resource provider list --resource VCPU=15 -c uuid", want: `[]`},
	{
		from: 4,
		line: "resource provider list --resource DISK_GB=10 --member-of {A} -c uuid",
		want: `[{"uuid":"{Q}"}]`,
	},
	{
		from: 4,
		line: "resource provider list --resource NONE=1",
		want: "error: No such resource class NONE. (HTTP 400)",
	},
	{
		from: 18,
		line: "resource provider list --required CUSTOM_T_{v} --required HW_CPU_X86_AVX -c uuid",
		want: `[{"uuid":"{P}"}]`,
	},
	{
		from: 18,
		line: "resource provider list --required CUSTOM_T_{v} --required HW_CPU_X86_SSE -c uuid",
		want: `[]`,
	},
	{
		from: 18,
		line: "resource provider list --required CUSTOM_NONE",
		want: "error: No such trait(s): CUSTOM_NONE. (HTTP 400)",
	},
	{from: 22, line: "resource provider list --forbidden CUSTOM_T_{v} -c uuid", want: `[{"uuid":"{Q}"}]`},
	{
		from: 22,
		line: "resource provider list --required HW_CPU_X86_AVX --forbidden CUSTOM_T_{v} -c uuid",
		want: `[]`,
	},
	{
		from: 39,
		line: "resource provider list --required CUSTOM_T_{v},HW_CPU_X86_SSE -c uuid",
		want: `[{"uuid":"{P}"}]`,
	},
}

var candidateCommands = []versionedCommand{
	{
		from:  10,
		until: 26,
		line:  "allocation candidate list --resource VCPU=2",
		want: `[
		{"#":1,"allocation":"VCPU=2","resource provider":"{P}","inventory used/capacity":"VCPU=0/14","traits":"CUSTOM_T_{v},HW_CPU_X86_AVX"}]`,
	},
	{from: 27, line: "allocation candidate list --resource VCPU=2", want: `[
		{"#":1,"allocation":"VCPU=2","resource provider":"{P}","inventory used/capacity":"MEMORY_MB=0/1024,VCPU=0/14","traits":"CUSTOM_T_{v},HW_CPU_X86_AVX"}]`},
	{from: 10, line: "allocation candidate list --resource VCPU=2 --resource MEMORY_MB=512", want: `[
		{"#":1,"allocation":"MEMORY_MB=512,VCPU=2","resource provider":"{P}","inventory used/capacity":"MEMORY_MB=0/1024,VCPU=0/14","traits":"CUSTOM_T_{v},HW_CPU_X86_AVX"}]`},
	{from: 10, line: "allocation candidate list --resource VCPU=15", want: `[]`},
	{
		from: 10,
		line: "allocation candidate list --resource NONE=1",
		want: "error: Invalid resource class in resources parameter: No such resource class NONE. (HTTP 400)",
	},
	{from: 16, line: "allocation candidate list --resource DISK_GB=5 --limit 1", want: `[
		{"#":1,"allocation":"DISK_GB=5","resource provider":"{Q}","inventory used/capacity":"DISK_GB=0/10","traits":""}]`},
	{
		from: 17,
		line: "allocation candidate list --resource VCPU=2 --required CUSTOM_T_{v} --required HW_CPU_X86_AVX -c allocation",
		want: `[{"allocation":"VCPU=2"}]`,
	},
	{from: 17, line: "allocation candidate list --resource VCPU=2 --required HW_CPU_X86_SSE", want: `[]`},
	{
		from: 21,
		line: "allocation candidate list --resource DISK_GB=5 --member-of {A} -c allocation",
		want: `[{"allocation":"DISK_GB=5"}]`,
	},
	{from: 21, line: "allocation candidate list --resource VCPU=2 --member-of {A},{B}", want: `[]`},
	{from: 22, line: "allocation candidate list --resource VCPU=2 --forbidden CUSTOM_T_{v}", want: `[]`},
	{
		from: 24,
		line: "allocation candidate list --resource DISK_GB=5 --member-of {A} --member-of {B},{U} -c allocation",
		want: `[{"allocation":"DISK_GB=5"}]`,
	},
	{
		from: 25,
		line: "allocation candidate list --group 1 --resource VCPU=2 --required CUSTOM_T_{v} --group 2 --resource MEMORY_MB=1 -c allocation",
		want: `[{"allocation":"MEMORY_MB=1,VCPU=2"}]`,
	},
	{
		from: 25,
		line: "allocation candidate list --group 1 --resource VCPU=2 --group 2 --resource MEMORY_MB=1 --group-policy isolate",
		want: `[]`,
	},
	{
		from: 39,
		line: "allocation candidate list --resource VCPU=2 --required HW_CPU_X86_SSE,CUSTOM_T_{v} -c allocation",
		want: `[{"allocation":"VCPU=2"}]`,
	},
}

var cleanupCommands = []versionedCommand{
	{from: 6, line: "resource provider trait delete {P}"},
	{from: 6, line: "resource provider trait list {P}", want: `[]`},
	{from: 6, line: "trait delete CUSTOM_T_{v}"},
	{from: 6, line: "trait delete CUSTOM_T_{v}", want: "error: No such trait(s): CUSTOM_T_{v}. (HTTP 404)"},
	{until: 4, line: "resource provider inventory delete {P} --resource-class VCPU"},
	{from: 5, line: "resource provider inventory delete {P}"},
	{from: 5, line: "resource provider inventory list {P}", want: `[]`},
	{line: "resource provider delete {P}"},
	{line: "resource provider delete {Q}"},
	{
		line: "resource provider delete {P}",
		want: "error: No resource provider with uuid {P} found for delete",
	},
}
