// Package mirror keeps a view of jobs and activations in SQLite that can be rebuilt at any time.
package mirror

import _ "modernc.org/sqlite" // the driver
