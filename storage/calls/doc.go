// Package calls counts the calls of functions, so that a list of functions can show them
// without reading activations.
//
// A Counter adds up the calls that end on a replica, in memory, and writes the sums every two
// seconds in one pipeline. So a function that is called 10,000 times a second costs a handful
// of commands every two seconds, and a replica without calls none. A replica that reads the
// counts of a namespace writes its own first (FlushOf), so that a call shows in the list that
// follows it; the calls of other replicas are at most two seconds late. The counts are approximate:
// those of the last two seconds are lost with a killed replica, and those of a pipeline that
// the store did not answer are dropped, since they may have been written. Activations that
// readers end as lost are not counted.
//
// The counts of a function and a day, UTC, are one hash, which expires:
//
//	cs:fn:t_acme01:default:mail:calls:20454   {"07:3": 120, "07:9": 2, "07:f": 2, "08:3": 14}
//
// In hour 7, 120 calls took from 4 ms to 8 ms and 2 took from 256 ms to 512 ms; 2 of the 122
// failed. Repository reads the hashes of today and yesterday, for a page of functions in two
// round trips.
package calls
