package placement

// endpoints is the table of the API's operations. A literal path must stand before a pattern that also matches this path, because the API
// uses the first endpoint that matches.
var endpoints = []endpoint{
	{"GET", "/resource_providers", 0, "resource_providers:list", accept, (*handler).listProviders},
	{"POST", "/resource_providers", 0, "resource_providers:create", body, (*handler).createProvider},
	{"GET", "/resource_providers/{uuid}", 0, "resource_providers:show", accept, (*handler).showProvider},
	{"PUT", "/resource_providers/{uuid}", 0, "resource_providers:update", body, (*handler).updateProvider},
	{"DELETE", "/resource_providers/{uuid}", 0, "resource_providers:delete", anything, (*handler).deleteProvider},

	{"GET", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:list", accept, (*handler).listInventories},
	{"POST", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:create", body, (*handler).createInventory},
	{"PUT", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:update", body, (*handler).replaceInventories},
	{"DELETE", "/resource_providers/{uuid}/inventories", 5, "resource_providers:inventories:delete", lateMethod, (*handler).clearInventories},
	{"GET", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:show", accept, (*handler).showInventory},
	{"PUT", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:update", body, (*handler).updateInventory},
	{"DELETE", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:delete", anything, (*handler).deleteInventory},

	{"GET", "/resource_providers/{uuid}/usages", 0, "resource_providers:usages", accept, (*handler).showProviderUsage},
	{"GET", "/resource_providers/{uuid}/allocations", 0, "resource_providers:allocations:list", accept, (*handler).listProviderAllocations},
	{"GET", "/resource_providers/{uuid}/aggregates", 1, "resource_providers:aggregates:list", accept, (*handler).listAggregates},
	{"PUT", "/resource_providers/{uuid}/aggregates", 1, "resource_providers:aggregates:update", bodyFirst, (*handler).replaceAggregates},
	{"GET", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:list", accept, (*handler).listProviderTraits},
	{"PUT", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:update", body, (*handler).replaceProviderTraits},
	{"DELETE", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:delete", anything, (*handler).clearProviderTraits},

	{"POST", "/allocations", 13, "allocations:manage", body, (*handler).postAllocations},
	{"GET", "/allocations/{consumer}", 0, "allocations:list", accept, (*handler).showAllocations},
	{"PUT", "/allocations/{consumer}", 0, "allocations:update", body, (*handler).putAllocations},
	{"DELETE", "/allocations/{consumer}", 0, "allocations:delete", anything, (*handler).deleteAllocations},

	{"GET", "/allocation_candidates", 10, "allocation_candidates:list", accept, (*handler).listCandidates},

	{"GET", "/resource_classes", 2, "resource_classes:list", accept, (*handler).listClasses},
	{"POST", "/resource_classes", 2, "resource_classes:create", body, (*handler).createClass},
	{"GET", "/resource_classes/{name}", 2, "resource_classes:show", accept, (*handler).showClass},
	{"PUT", "/resource_classes/{name}", 2, "resource_classes:update", oldBody, (*handler).updateClass},
	{"DELETE", "/resource_classes/{name}", 2, "resource_classes:delete", anything, (*handler).deleteClass},

	{"GET", "/traits", 6, "traits:list", accept, (*handler).listTraits},
	{"GET", "/traits/{name}", 6, "traits:show", anything, (*handler).showTrait},
	{"PUT", "/traits/{name}", 6, "traits:update", anything, (*handler).putTrait},
	{"DELETE", "/traits/{name}", 6, "traits:delete", anything, (*handler).deleteTrait},

	{"GET", "/usages", 9, "usages", accept, (*handler).showUsages},

	{"POST", "/reshaper", 30, "reshaper:reshape", body, (*handler).reshape},
}
