package interop

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/allocationcandidates"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/allocations"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/resourceclasses"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/resourceproviders"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/traits"
	"github.com/gophercloud/gophercloud/v2/openstack/placement/v1/usages"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"berth/internal/server/servertest"
	"berth/internal/store/storetest"
)

// goClient calls berth's Placement API through gophercloud.
type goClient struct {
	*testing.T
	ctx      context.Context
	endpoint string
	host     string // a resource provider
	rack     string // the provider that is the host's parent during a part of the test
	agg      string // an aggregate with the host in it
}

// client returns gophercloud's Placement client for the given microversion.
func (g *goClient) client(version string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{TokenID: "admin"},
		Endpoint:       g.endpoint + "/",
		Type:           "placement",
		Microversion:   version,
	}
}

func (g *goClient) mustSucceed(what string, err error) {
	g.Helper()
	if err != nil {
		g.Fatalf("%s with gophercloud: got the error %v, want none", what, err)
	}
}

func (g *goClient) expectStatus(what string, err error, status int) {
	g.Helper()
	if !gophercloud.ResponseCodeIs(err, status) {
		g.Errorf("%s: want an error with status %d, got error %v", what, status, err)
	}
}

func (g *goClient) expectEqual(what string, want, got any) {
	g.Helper()
	if d := cmp.Diff(want, got); d != "" {
		g.Errorf("%s: result of gophercloud differs (-want +got):\n%s", what, d)
	}
}

// listAll reads all pages of a list and returns the items of all pages.
func listAll[T any](g *goClient, pager pagination.Pager, extract func(pagination.Page) (T, error)) T {
	g.Helper()
	page, err := pager.AllPages(g.ctx)
	g.mustSucceed("list all pages", err)
	list, err := extract(page)
	g.mustSucceed("extract the items of the list", err)
	return list
}

func TestGophercloud_Placement(t *testing.T) {
	t.Parallel()
	s := servertest.NewDeployment(t, storetest.URL(t))
	g := &goClient{
		T:        t,
		ctx:      t.Context(),
		endpoint: s.StartWorker("api").URL + "/placement",
		host:     uuid.NewString(),
		rack:     uuid.NewString(),
		agg:      uuid.NewString(),
	}

	g.providers()
	g.inventories()
	g.aggregates()
	g.traits()
	g.classes()
	g.allocations()
	g.candidates()
	g.end()

	if left := s.Rows(`select name from provider union all select uuid from consumer`); len(left) > 0 {
		t.Errorf(
			"delete everything that the test created: got the remaining providers and consumers %v in the database, want none",
			left,
		)
	}
}

func (g *goClient) providers() {
	c := g.client("1.39")
	root := resourceproviders.CreateOpts{Name: "rack", UUID: g.rack}
	rack, err := resourceproviders.Create(g.ctx, c, root).Extract()
	g.mustSucceed("create a provider", err)
	child := resourceproviders.CreateOpts{Name: "host", UUID: g.host, ParentProviderUUID: g.rack}
	host, err := resourceproviders.Create(g.ctx, c, child).Extract()
	g.mustSucceed("create a child provider", err)
	g.expectEqual("parent and root of both providers", []string{"", g.rack, g.rack, g.rack}, []string{
		rack.ParentProviderUUID,
		rack.RootProviderUUID,
		host.ParentProviderUUID,
		host.RootProviderUUID,
	})
	_, err = resourceproviders.Create(g.ctx, c, resourceproviders.CreateOpts{Name: "rack"}).Extract()
	g.expectStatus("create a second provider with the same name", err, http.StatusConflict)

	// no microversion means 1.0
	for version, links := range map[string]int{
		"":     3,
		"1.1":  4,
		"1.6":  5,
		"1.11": 6,
		"1.39": 6,
	} {
		found, err := resourceproviders.Get(g.ctx, g.client(version), g.host).Extract()
		g.mustSucceed("show the provider", err)
		if found.Name != "host" || len(found.Links) != links {
			g.Errorf(
				"show the resource provider at microversion %q: got %+v, want the name host and the links of that microversion",
				version,
				found,
			)
		}
	}
	name := "host-1"
	update := resourceproviders.UpdateOpts{Name: &name}
	renamed, err := resourceproviders.Update(g.ctx, c, g.host, update).Extract()
	g.mustSucceed("rename the provider", err)
	g.expectEqual("name and parent of the renamed provider", [2]string{"host-1", g.rack},
		[2]string{renamed.Name, renamed.ParentProviderUUID})
	alone := ""
	update.ParentProviderUUID = &alone
	moved, err := resourceproviders.Update(g.ctx, c, g.host, update).Extract()
	g.mustSucceed("take the provider out of its tree", err)
	g.expectEqual("parent and root of the provider that was taken out of its tree",
		[2]string{"", g.host}, [2]string{moved.ParentProviderUUID, moved.RootProviderUUID})
	g.expectEqual("list providers by name", []string{g.host},
		g.list("1.0", resourceproviders.ListOpts{Name: "host-1"}))
	g.expectEqual("list providers by UUID", []string{g.rack},
		g.list("1.0", resourceproviders.ListOpts{UUID: g.rack}))
	g.expectEqual("list providers by tree", []string{g.rack},
		g.list("1.14", resourceproviders.ListOpts{InTree: g.rack}))
	g.mustSucceed("delete the provider rack", resourceproviders.Delete(g.ctx, c, g.rack).ExtractErr())
	g.expectStatus("delete a provider again",
		resourceproviders.Delete(g.ctx, c, g.rack).ExtractErr(), http.StatusNotFound)
}

// list returns the UUIDs of the resource providers that match a query.
func (g *goClient) list(version string, opts resourceproviders.ListOptsBuilder) (found []string) {
	g.Helper()
	for _, p := range listAll(g, resourceproviders.List(g.client(version), opts), resourceproviders.ExtractResourceProviders) {
		found = append(found, p.UUID)
	}
	return found
}

func (g *goClient) inventories() {
	c := g.client("1.39")
	vcpu := resourceproviders.Inventory{
		Total:           16,
		Reserved:        2,
		MinUnit:         1,
		MaxUnit:         16,
		StepSize:        1,
		AllocationRatio: 1.5,
	}
	memory := resourceproviders.Inventory{
		Total:           1024,
		MinUnit:         1,
		MaxUnit:         1024,
		StepSize:        1,
		AllocationRatio: 1,
	}
	want := resourceproviders.ResourceProviderInventories{
		Inventories: map[string]resourceproviders.Inventory{"VCPU": vcpu, "MEMORY_MB": memory},
	}
	got, err := resourceproviders.UpdateInventories(g.ctx, c, g.host, want).Extract()
	g.mustSucceed("set inventories", err)
	want.ResourceProviderGeneration = 1
	g.expectEqual("answer to setting inventories", want, *got)
	outdated := resourceproviders.UpdateInventoriesOpts{Inventories: want.Inventories}
	_, err = resourceproviders.UpdateInventories(g.ctx, c, g.host, outdated).Extract()
	g.expectStatus("write with an outdated provider generation", err, http.StatusConflict)
	vcpu.AllocationRatio = 1
	changed := resourceproviders.UpdateInventoryOpts{ResourceProviderGeneration: 1, Inventory: vcpu}
	_, err = resourceproviders.UpdateInventory(g.ctx, c, g.host, "VCPU", changed).Extract()
	g.mustSucceed("set one inventory", err)
	one, err := resourceproviders.GetInventory(g.ctx, c, g.host, "VCPU").Extract()
	g.mustSucceed("show one inventory", err)
	g.expectEqual(
		"answer to showing one inventory",
		resourceproviders.ResourceProviderInventory{ResourceProviderGeneration: 2, Inventory: vcpu},
		*one,
	)
	_, err = resourceproviders.GetInventory(g.ctx, c, g.host, "DISK_GB").Extract()
	g.expectStatus("show an inventory that the provider does not have", err, http.StatusNotFound)
	all, err := resourceproviders.GetInventories(g.ctx, c, g.host).Extract()
	g.mustSucceed("show inventories", err)
	want.ResourceProviderGeneration, want.Inventories["VCPU"] = 2, vcpu
	g.expectEqual("answer to showing all inventories", want, *all)
	g.expectEqual("list providers by available resources", []string{g.host},
		g.list("1.4", resourceproviders.ListOpts{Resources: "VCPU:14,MEMORY_MB:1"}))
	g.expectEqual("list providers by more resources than are available", []string(nil),
		g.list("1.4", resourceproviders.ListOpts{Resources: "VCPU:15"}))
}

func (g *goClient) aggregates() {
	none := resourceproviders.UpdateAggregatesOpts{Aggregates: []string{}}
	_, err := resourceproviders.UpdateAggregates(g.ctx, g.client("1.18"), g.host, none).Extract()
	g.mustSucceed("set no aggregates in the format before microversion 1.19", err)
	generation := 2
	one := resourceproviders.UpdateAggregatesOpts{
		ResourceProviderGeneration: &generation,
		Aggregates:                 []string{g.agg},
	}
	got, err := resourceproviders.UpdateAggregates(g.ctx, g.client("1.19"), g.host, one).Extract()
	g.mustSucceed("set an aggregate", err)
	generation = 3
	want := resourceproviders.ResourceProviderAggregates{
		ResourceProviderGeneration: &generation,
		Aggregates:                 []string{g.agg},
	}
	g.expectEqual("aggregates of the provider", want, *got)
	got, err = resourceproviders.GetAggregates(g.ctx, g.client("1.39"), g.host).Extract()
	g.mustSucceed("show aggregates", err)
	g.expectEqual("aggregates of the provider", want, *got)
	stale := 2
	outdated := resourceproviders.UpdateAggregatesOpts{ResourceProviderGeneration: &stale}
	_, err = resourceproviders.UpdateAggregates(g.ctx, g.client("1.39"), g.host, outdated).Extract()
	// gophercloud sends null instead of an empty list of aggregates
	g.expectStatus("set aggregates with an old generation", err, http.StatusBadRequest)
	outdated.Aggregates = []string{}
	_, err = resourceproviders.UpdateAggregates(g.ctx, g.client("1.39"), g.host, outdated).Extract()
	g.expectStatus("write with an outdated provider generation", err, http.StatusConflict)
	g.expectEqual("list providers by aggregate", []string{g.host},
		g.list("1.3", resourceproviders.ListOpts{MemberOf: "in:" + g.agg + "," + g.rack}))
	g.expectEqual("list providers that are not in the aggregate", []string(nil),
		g.list("1.32", resourceproviders.ListOpts{MemberOf: "!" + g.agg}))
}

func (g *goClient) traits() {
	c := g.client("1.39")
	g.mustSucceed("create a trait", traits.Create(g.ctx, c, "CUSTOM_GOLD").ExtractErr())
	g.mustSucceed("create a trait again", traits.Create(g.ctx, c, "CUSTOM_GOLD").ExtractErr())
	g.mustSucceed("check that a trait exists", traits.Get(g.ctx, c, "CUSTOM_GOLD").ExtractErr())
	g.expectStatus("check a trait that does not exist",
		traits.Get(g.ctx, c, "CUSTOM_NONE").ExtractErr(), http.StatusNotFound)
	got, err := resourceproviders.UpdateTraits(g.ctx, c, g.host, resourceproviders.UpdateTraitsOpts{
		ResourceProviderGeneration: 3,
		Traits:                     []string{"CUSTOM_GOLD", "HW_CPU_X86_AVX"},
	}).Extract()
	g.mustSucceed("set the traits of a provider", err)
	slices.Sort(got.Traits)
	g.expectEqual("answer to setting traits", resourceproviders.ResourceProviderTraits{
		ResourceProviderGeneration: 4,
		Traits:                     []string{"CUSTOM_GOLD", "HW_CPU_X86_AVX"},
	}, *got)
	got, err = resourceproviders.GetTraits(g.ctx, c, g.host).Extract()
	g.mustSucceed("show the traits of a provider", err)
	g.expectEqual("provider generation in the answer", 4, got.ResourceProviderGeneration)
	yes := true
	associated := listAll(g, traits.List(c, traits.ListOpts{Associated: &yes}), traits.ExtractTraits)
	slices.Sort(associated)
	g.expectEqual("list traits that providers have", []string{"CUSTOM_GOLD", "HW_CPU_X86_AVX"}, associated)
	g.expectEqual("list traits by name", []string{"CUSTOM_GOLD"},
		listAll(g, traits.List(c, traits.ListOpts{Name: "startswith:CUSTOM_"}), traits.ExtractTraits))
	g.expectStatus("delete a trait that a provider has",
		traits.Delete(g.ctx, c, "CUSTOM_GOLD").ExtractErr(), http.StatusConflict)
	g.expectEqual("list providers by required and forbidden traits", []string{g.host},
		g.list("1.22", resourceproviders.ListOpts{Required: "CUSTOM_GOLD,!HW_CPU_X86_SSE"}))
	g.expectEqual("list providers by one of several traits", []string{g.host},
		g.list("1.39", resourceproviders.ListOpts139{Name: "host-1", MemberOf: []string{g.agg, "!" + g.rack},
			Required: []string{"in:CUSTOM_GOLD,HW_CPU_X86_SSE", "!HW_CPU_X86_SSE"}}))
	g.mustSucceed("remove all traits from a provider",
		resourceproviders.DeleteTraits(g.ctx, c, g.host).ExtractErr())
	g.mustSucceed("delete the trait", traits.Delete(g.ctx, c, "CUSTOM_GOLD").ExtractErr())
}

func (g *goClient) classes() {
	c := g.client("1.39")
	g.mustSucceed("create a resource class",
		resourceclasses.Create(g.ctx, c, resourceclasses.CreateOpts{Name: "CUSTOM_SLOT"}).ExtractErr())
	g.expectStatus(
		"create a resource class again",
		resourceclasses.Create(g.ctx, c, resourceclasses.CreateOpts{Name: "CUSTOM_SLOT"}).ExtractErr(),
		http.StatusConflict,
	)
	g.mustSucceed("create a resource class that exists with PUT",
		resourceclasses.Update(g.ctx, c, "CUSTOM_SLOT").ExtractErr())
	found, err := resourceclasses.Get(g.ctx, c, "CUSTOM_SLOT").Extract()
	g.mustSucceed("show a resource class", err)
	g.expectEqual("answer to showing a resource class", resourceclasses.ResourceClass{
		Name:  "CUSTOM_SLOT",
		Links: []resourceclasses.Link{{Href: "/placement/resource_classes/CUSTOM_SLOT", Rel: "self"}},
	}, *found)
	all := listAll(g, resourceclasses.List(c), resourceclasses.ExtractResourceClasses)
	g.expectEqual("first and last resource class of the list", [2]string{"VCPU", "CUSTOM_SLOT"},
		[2]string{all[0].Name, all[len(all)-1].Name})
	g.mustSucceed("delete a resource class", resourceclasses.Delete(g.ctx, c, "CUSTOM_SLOT").ExtractErr())
	g.expectStatus("delete a standard resource class",
		resourceclasses.Delete(g.ctx, c, "VCPU").ExtractErr(), http.StatusBadRequest)
}

func (g *goClient) allocations() {
	c := g.client("1.39")
	one, other := uuid.NewString(), uuid.NewString()
	take := func(vcpus int, generation *int) allocations.UpdateOpts {
		o := allocations.UpdateOpts{
			ProjectID:          "p",
			UserID:             "u",
			ConsumerType:       "INSTANCE",
			ConsumerGeneration: generation,
			Allocations:        map[string]allocations.ProviderAllocationsOpts{},
		}
		if vcpus > 0 {
			o.Allocations[g.host] = allocations.ProviderAllocationsOpts{
				Resources: map[string]int{"VCPU": vcpus},
			}
		}
		return o
	}
	first, second := 1, 2
	g.mustSucceed("allocate", allocations.Update(g.ctx, c, one, take(2, nil)).ExtractErr())
	g.expectStatus("allocate for an existing consumer without its generation",
		allocations.Update(g.ctx, c, one, take(2, nil)).ExtractErr(), http.StatusConflict)
	g.expectStatus("allocate more than the provider has",
		allocations.Update(g.ctx, c, one, take(15, &first)).ExtractErr(), http.StatusConflict)
	both := allocations.ManageOpts{one: take(3, &first), other: take(4, nil)}
	g.mustSucceed("allocate for two consumers in one request",
		allocations.Manage(g.ctx, c, both).ExtractErr())
	got, err := allocations.Get(g.ctx, c, one).Extract()
	g.mustSucceed("show allocations", err)
	p, u, kind := "p", "u", "INSTANCE"
	g.expectEqual("allocations of the consumer", allocations.Allocations{
		ProjectID:          &p,
		UserID:             &u,
		ConsumerType:       &kind,
		ConsumerGeneration: &second,
		Allocations: map[string]allocations.ProviderAllocations{
			g.host: {Generation: 7, Resources: map[string]int{"VCPU": 3}},
		},
	}, *got)
	held, err := resourceproviders.GetAllocations(g.ctx, c, g.host).Extract()
	g.mustSucceed("show the allocations of a provider", err)
	g.expectEqual("allocations of the provider", map[string]resourceproviders.Allocation{
		one:   {Resources: map[string]int{"VCPU": 3}},
		other: {Resources: map[string]int{"VCPU": 4}},
	}, held.Allocations)
	used, err := resourceproviders.GetUsages(g.ctx, c, g.host).Extract()
	g.mustSucceed("show usages of the provider", err)
	g.expectEqual("usages of the provider", resourceproviders.ResourceProviderUsage{
		ResourceProviderGeneration: 7,
		Usages:                     map[string]int{"VCPU": 7, "MEMORY_MB": 0},
	}, *used)
	ofUser := usages.GetOpts{ProjectID: "p", UserID: "u"}
	before, err := usages.Get(g.ctx, g.client("1.37"), ofUser).ExtractPre138()
	g.mustSucceed("show usages of the project before microversion 1.38", err)
	g.expectEqual("usages of the project before microversion 1.38", map[string]int{"VCPU": 7}, before.Usages)
	after, err := usages.Get(g.ctx, c, usages.GetOpts{ProjectID: "p", ConsumerType: "INSTANCE"}).Extract()
	g.mustSucceed("show usages of the project", err)
	g.expectEqual("usages of the project from microversion 1.38 on",
		map[string]usages.ConsumerTypeUsage{"INSTANCE": {"VCPU": 7, "consumer_count": 2}}, after.Usages)
	g.expectStatus("delete a provider with allocations",
		resourceproviders.Delete(g.ctx, c, g.host).ExtractErr(), http.StatusConflict)
	g.mustSucceed("remove all allocations of a consumer with PUT",
		allocations.Update(g.ctx, c, one, take(0, &second)).ExtractErr())
	g.mustSucceed("delete allocations", allocations.Delete(g.ctx, c, other).ExtractErr())
	g.expectStatus("delete allocations again",
		allocations.Delete(g.ctx, c, other).ExtractErr(), http.StatusNotFound)
	empty, err := allocations.Get(g.ctx, c, one).Extract()
	g.mustSucceed("show the allocations of a consumer without allocations", err)
	g.expectEqual("allocations of a consumer without allocations",
		allocations.Allocations{Allocations: map[string]allocations.ProviderAllocations{}}, *empty)
}

func (g *goClient) candidates() {
	listed := allocationcandidates.List(g.client("1.11"), allocationcandidates.ListOpts{Resources: "VCPU:2"})
	old := listAll(g, listed, allocationcandidates.ExtractAllocationCandidates110)
	cpus := map[string]allocationcandidates.ProviderSummaryResource{"VCPU": {Capacity: 14}}
	g.expectEqual(
		"allocation candidates before microversion 1.12",
		allocationcandidates.AllocationCandidates110{
			AllocationRequests: []allocationcandidates.AllocationRequest110{
				{Allocations: []allocationcandidates.AllocationRequest110Resource{{
					ResourceProvider: allocationcandidates.AllocationRequest110ResourceProvider{UUID: g.host},
					Resources:        map[string]int{"VCPU": 2},
				}}},
			},
			ProviderSummaries: map[string]allocationcandidates.ProviderSummary110{g.host: {Resources: cpus}},
		},
		*old,
	)
	got := listAll(g, allocationcandidates.List(g.client("1.39"), allocationcandidates.ListOpts{
		Resources:    "VCPU:2",
		Required:     []string{"!HW_CPU_X86_SSE"},
		MemberOf:     []string{g.agg},
		InTree:       g.host,
		GroupPolicy:  "none",
		Limit:        5,
		RootRequired: "!HW_CPU_X86_SSE",
		SameSubtree:  []string{"_A,_B"},
		ResourceGroups: map[string]allocationcandidates.ResourceGroup{
			"_A": {Resources: "MEMORY_MB:1"},
			"_B": {Resources: "VCPU:1", InTree: g.host, MemberOf: g.agg},
		},
	}), allocationcandidates.ExtractAllocationCandidates)
	none, root := []string{}, g.host
	g.expectEqual("allocation candidates", allocationcandidates.AllocationCandidates{
		AllocationRequests: []allocationcandidates.AllocationRequest{{
			Allocations: map[string]allocationcandidates.AllocationRequestResource{
				g.host: {Resources: map[string]int{"VCPU": 3, "MEMORY_MB": 1}},
			},
			Mappings: &map[string][]string{"": {g.host}, "_A": {g.host}, "_B": {g.host}}}},
		ProviderSummaries: map[string]allocationcandidates.ProviderSummary{
			g.host: {Traits: &none, RootProviderUUID: &root,
				Resources: map[string]allocationcandidates.ProviderSummaryResource{
					"VCPU":      {Capacity: 14},
					"MEMORY_MB": {Capacity: 1024},
				}},
		},
	}, *got)
}

func (g *goClient) end() {
	c := g.client("1.39")
	g.mustSucceed("delete one inventory",
		resourceproviders.DeleteInventory(g.ctx, c, g.host, "VCPU").ExtractErr())
	g.mustSucceed("delete all inventories",
		resourceproviders.DeleteInventories(g.ctx, c, g.host).ExtractErr())
	g.mustSucceed("delete the provider host", resourceproviders.Delete(g.ctx, c, g.host).ExtractErr())
}
