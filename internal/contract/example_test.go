package contract_test

import (
	"encoding/json"
	"fmt"

	"berth/internal/contract"
)

// An agent that has wired a port sends the signal provisioning-complete to the workflow of the port.
func ExampleReport() {
	report, err := json.Marshal(contract.Report{Entity: "L2", Host: "cmp-1"})
	if err != nil {
		panic(err)
	}
	fmt.Println("workflow:", contract.PortID("6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11"))
	fmt.Println("signal:", contract.SignalProvisioningComplete)
	fmt.Println("payload:", string(report))
	// Output:
	// workflow: port/6c2a1f0e-6d0b-4d0c-8a5e-0c1f0a4a7b11
	// signal: provisioning-complete
	// payload: {"entity":"L2","host":"cmp-1"}
}

// The workflow ID and the task queue follow from the type and the key of a row.
func Example_workflowIDs() {
	fmt.Println(contract.TaskQueue(contract.Lease), contract.LeaseID("7d9f5a52-1f6e-4a7c-9a53-3a6a0f0b8f10"))
	fmt.Println(contract.TaskQueue(contract.JournalEntry), contract.JournalID("42"))
	fmt.Println(contract.Key(contract.JournalID("42")))
	// Output:
	// leases lease/7d9f5a52-1f6e-4a7c-9a53-3a6a0f0b8f10
	// journal journal/42
	// 42
}
