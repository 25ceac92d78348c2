package placement

// endpoints is the API's table. Paths with a literal segment stand before patterns that they also fit.
var endpoints = []endpoint{
	{"GET", "/resource_providers", 0, "resource_providers:list", accept, (*room).listProviders},
	{"POST", "/resource_providers", 0, "resource_providers:create", body, (*room).createProvider},
	{"GET", "/resource_providers/{uuid}", 0, "resource_providers:show", accept, (*room).showProvider},
	{"PUT", "/resource_providers/{uuid}", 0, "resource_providers:update", body, (*room).updateProvider},
	{"DELETE", "/resource_providers/{uuid}", 0, "resource_providers:delete", anything, (*room).deleteProvider},

	{"GET", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:list", accept, (*room).listInventories},
	{"POST", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:create", body, (*room).createInventory},
	{"PUT", "/resource_providers/{uuid}/inventories", 0, "resource_providers:inventories:update", body, (*room).replaceInventories},
	{"DELETE", "/resource_providers/{uuid}/inventories", 5, "resource_providers:inventories:delete", lateMethod, (*room).clearInventories},
	{"GET", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:show", accept, (*room).showInventory},
	{"PUT", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:update", body, (*room).updateInventory},
	{"DELETE", "/resource_providers/{uuid}/inventories/{class}", 0, "resource_providers:inventories:delete", anything, (*room).deleteInventory},

	{"GET", "/resource_providers/{uuid}/usages", 0, "resource_providers:usages", accept, (*room).showProviderUsage},
	{"GET", "/resource_providers/{uuid}/allocations", 0, "resource_providers:allocations:list", accept, (*room).listProviderAllocations},
	{"GET", "/resource_providers/{uuid}/aggregates", 1, "resource_providers:aggregates:list", accept, (*room).listAggregates},
	{"PUT", "/resource_providers/{uuid}/aggregates", 1, "resource_providers:aggregates:update", bodyFirst, (*room).replaceAggregates},
	{"GET", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:list", accept, (*room).listProviderTraits},
	{"PUT", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:update", body, (*room).replaceProviderTraits},
	{"DELETE", "/resource_providers/{uuid}/traits", 6, "resource_providers:traits:delete", anything, (*room).clearProviderTraits},

	{"POST", "/allocations", 13, "allocations:manage", body, (*room).postAllocations},
	{"GET", "/allocations/{consumer}", 0, "allocations:list", accept, (*room).showAllocations},
	{"PUT", "/allocations/{consumer}", 0, "allocations:update", body, (*room).putAllocations},
	{"DELETE", "/allocations/{consumer}", 0, "allocations:delete", anything, (*room).deleteAllocations},

	{"GET", "/allocation_candidates", 10, "allocation_candidates:list", accept, (*room).listCandidates},

	{"GET", "/resource_classes", 2, "resource_classes:list", accept, (*room).listClasses},
	{"POST", "/resource_classes", 2, "resource_classes:create", body, (*room).createClass},
	{"GET", "/resource_classes/{name}", 2, "resource_classes:show", accept, (*room).showClass},
	{"PUT", "/resource_classes/{name}", 2, "resource_classes:update", oldBody, (*room).updateClass},
	{"DELETE", "/resource_classes/{name}", 2, "resource_classes:delete", anything, (*room).deleteClass},

	{"GET", "/traits", 6, "traits:list", accept, (*room).listTraits},
	{"GET", "/traits/{name}", 6, "traits:show", anything, (*room).showTrait},
	{"PUT", "/traits/{name}", 6, "traits:update", anything, (*room).putTrait},
	{"DELETE", "/traits/{name}", 6, "traits:delete", anything, (*room).deleteTrait},

	{"GET", "/usages", 9, "usages", accept, (*room).showUsages},

	{"POST", "/reshaper", 30, "reshaper:reshape", body, (*room).reshape},
}
