package db

// FailWhenDone makes failWhenDone available to tests.
var FailWhenDone = failWhenDone
