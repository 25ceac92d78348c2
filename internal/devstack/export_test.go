package devstack

// FreePorts exports freePorts to tests.
var FreePorts = freePorts
