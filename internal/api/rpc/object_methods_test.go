package rpc_test

import (
	"testing"

	"github.com/google/uuid"
)

func TestBulkPull_ReturnsVersionedObjects(t *testing.T) {
	t.Parallel()
	st := newFixture(t)
	port := st.createPorts(t, 1)[0]
	type object struct {
		Name    string         `json:"versioned_object.name"`
		Version string         `json:"versioned_object.version"`
		Data    map[string]any `json:"versioned_object.data"`
	}
	var ports, networks, rules []object
	st.call(t, &ports, "bulk_pull", "1.1", map[string]any{
		"resource_type": "Port",
		"version":       "1.7",
		"filter_kwargs": map[string]any{"id": []any{port.ID}},
	})
	if len(ports) != 1 || ports[0].Name != "Port" || ports[0].Version != "1.7" ||
		ports[0].Data["hints"] != nil {
		t.Fatalf("bulk_pull of a port: got %v, want one Port in version 1.7 without hints", ports)
	}
	binding := ports[0].Data["bindings"].([]any)[0].(map[string]any)["versioned_object.data"].(map[string]any)
	if binding["host"] != "cmp1" || binding["vif_type"] != "ovs" || binding["profile"] != "{}" {
		t.Errorf(
			"binding of the pulled port: got %v, want host cmp1, VIF type ovs and an empty profile",
			binding,
		)
	}
	if levels := ports[0].Data["binding_levels"].([]any); len(levels) != 1 {
		t.Errorf("binding levels of the pulled port: got %v, want one level", levels)
	}
	st.call(t, &networks, "bulk_pull", "1.1", map[string]any{
		"resource_type": "Network",
		"version":       "1.1",
		"filter_kwargs": map[string]any{"id": []any{st.network.ID}},
	})
	if len(networks) != 1 || len(networks[0].Data["segments"].([]any)) != 1 {
		t.Errorf("bulk_pull of a network: got %v, want one network with one segment", networks)
	}
	st.call(t, &rules, "bulk_pull", "1.1", map[string]any{
		"resource_type": "SecurityGroupRule",
		"version":       "1.2",
		"filter_kwargs": map[string]any{"security_group_id": []any{port.SecurityGroups[0]}},
	})
	if len(rules) != 4 {
		t.Errorf("bulk_pull of the security group's rules: got %v, want four", rules)
	}
	var one object
	st.call(t, &one, "pull", "1.0",
		map[string]any{"resource_type": "Subnet", "version": "1.1", "resource_id": st.subnet.ID})
	if one.Data["cidr"] != "10.1.0.0/16" {
		t.Errorf("pull of a subnet: got %v, want the CIDR 10.1.0.0/16", one)
	}
	st.call(t, nil, "pull", "1.0",
		map[string]any{"resource_type": "Port", "version": "1.7", "resource_id": uuid.NewString()})
}
