package journal

import (
	"encoding/json"
	"fmt"
	"slices"
)

// shapePort converts a port's binding profile to a string and its security groups to objects.
func shapePort(o object, _ Operation) error {
	if profile, ok := o["binding:profile"]; ok {
		if _, text := profile.(string); !text {
			raw, err := json.Marshal(profile)
			if err != nil {
				return fmt.Errorf("binding:profile: %w", err)
			}
			o["binding:profile"] = string(raw)
		}
	}
	shapeVIFDetails(o)
	groups, ok := o["security_groups"]
	if !ok {
		return nil
	}
	list, ok := groups.([]any)
	if groups != nil && !ok {
		return fmt.Errorf("the attribute security_groups is not a list")
	}
	shaped := make([]any, len(list))
	for i, g := range list {
		shaped[i] = g
		if id, plain := g.(string); plain {
			shaped[i] = object{"id": id}
		}
	}
	o["security_groups"] = shaped
	return nil
}

// shapeVIFDetails removes the VIF details that are null or objects, such as bound_drivers. The controller
// answers 500 to a detail that is an object, and forgets all details if one of them is null.
func shapeVIFDetails(o object) {
	details, ok := o["binding:vif_details"].(object)
	if !ok {
		return
	}
	for name, value := range details {
		if _, nested := value.(object); nested || value == nil {
			delete(details, name)
		}
	}
}

// protocolNumbers maps names of IP protocols that the controller does not know to their numbers.
var protocolNumbers = map[string]string{
	"ah":         "51",
	"dccp":       "33",
	"egp":        "8",
	"esp":        "50",
	"gre":        "47",
	"igmp":       "2",
	"ipip":       "4",
	"ipv6-encap": "41",
	"ipv6-frag":  "44",
	"ipv6-nonxt": "59",
	"ipv6-opts":  "60",
	"ipv6-route": "43",
	"ospf":       "89",
	"pgm":        "113",
	"rsvp":       "46",
	"sctp":       "132",
	"udplite":    "136",
	"vrrp":       "112",
}

// shapeRule converts the protocol of a security group rule to the name or number that the controller expects.
func shapeRule(o object, _ Operation) error {
	protocol, ok := o["protocol"].(string)
	if !ok {
		return nil
	}
	if o["ethertype"] == "IPv6" && slices.Contains([]string{"icmp", "ipv6-icmp", "icmpv6"}, protocol) {
		o["protocol"] = "icmpv6"
	} else if number, ok := protocolNumbers[protocol]; ok {
		o["protocol"] = number
	}
	return nil
}

// shapeFloatingIP removes the attributes of the port from the update of a floating IP if they are null.
func shapeFloatingIP(o object, op Operation) error {
	if op == Update {
		withoutNulls(o, "port_id", "fixed_ip_address", "router_id")
	}
	return nil
}

// shapeTrunk sets the status of a trunk to ACTIVE, as networking-odl does.
func shapeTrunk(o object, _ Operation) error {
	o["status"] = "ACTIVE"
	return nil
}

// shapeConnection renames the attribute l2_gateway_id of an L2 gateway connection to gateway_id.
func shapeConnection(o object, _ Operation) error {
	if gateway, ok := o["l2_gateway_id"]; ok {
		delete(o, "l2_gateway_id")
		if _, both := o["gateway_id"]; !both {
			o["gateway_id"] = gateway
		}
	}
	return nil
}

// shapePolicy groups the rules of a QoS policy by their type and adds the policy's project to each rule.
func shapePolicy(o object, _ Operation) error {
	rules, ok := o["rules"]
	if !ok {
		return nil
	}
	list, ok := rules.([]any)
	if rules != nil && !ok {
		return fmt.Errorf("the attribute rules is not a list")
	}
	delete(o, "rules")
	sorted := map[string][]any{"bandwidth_limit": {}, "dscp_marking": {}}
	for _, item := range list {
		rule, ok := item.(object)
		typ, named := rule["type"].(string)
		if !ok || !named {
			return fmt.Errorf("a rule is not an object with a type")
		}
		shaped := object{"tenant_id": o["tenant_id"]}
		for name, value := range rule {
			if name != "type" && name != "qos_policy_id" {
				shaped[name] = value
			}
		}
		sorted[typ] = append(sorted[typ], shaped)
	}
	for typ, all := range sorted {
		o[typ+"_rules"] = all
	}
	return nil
}

func withoutNulls(o object, names ...string) {
	for _, name := range names {
		if value, ok := o[name]; ok && value == nil {
			delete(o, name)
		}
	}
}
