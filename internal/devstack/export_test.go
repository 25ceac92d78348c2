package devstack

// FreePorts is freePorts.
var FreePorts = freePorts
