// Package deploy contains the files to run sous in production.
package deploy

import _ "embed"

// KVRocksConf is the configuration file of the production store. The tests and
// the benchmarks run a KVRocks with it.
//
//go:embed kvrocks.conf
var KVRocksConf string
