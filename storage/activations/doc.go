// Package activations keeps the records of invocations, an index of them for each
// function, and their logs, all for a week.
//
// A Repository writes each record with at most one script or one pipeline: absent to
// running, running to terminal, or absent to terminal for an activation that ended before
// its running record was written. A record that still says running after its deadline is
// lost: its process died. Get, List and SweepFunction end the lost records that they read;
// SweepFunction visits every record, so that none stays lost.
//
// An activation is up to five keys and an entry. The ones of a call that printed a line and
// returned 6 KiB, with the id shortened to 0b1e:
//
//	cs:act:t_acme01:0b1e:meta              the record, JSON
//	cs:act:t_acme01:0b1e:result            the result, since it exceeds 4 KiB
//	cs:log:t_acme01:0b1e:0                 chunk 0 of the log, NDJSON
//	cs:log:t_acme01:0b1e:chunks            {0}, the chunk numbers
//	cs:act:t_acme01:default:mail:index     0b1e with score 1767225600000, its start_ms
//
// The record with its fields that matter here, when the call starts and after it ended:
//
//	{"activation_id":"0b1e…",…,"status":"running","start_ms":1767225600000,
//	 "duration_ms":0,"deadline_ms":1767225610000,…,"error":null}
//	{"activation_id":"0b1e…",…,"status":"success","start_ms":1767225600000,
//	 "end_ms":1767225600420,"duration_ms":420,…,"error":null,"result_bytes":6144}
//
// Every write of the record renews its time-to-live, which is the retention, 7 days unless
// set; the index has none and is trimmed by the sweeper. The order of the writes is: index
// entry, log, result, record. A crash after the entry leaves an entry without a record,
// which readers skip and the sweeper removes. A crash after the log or the result leaves
// keys that no reader looks at and that expire. The record is one SET, which starts or ends
// the activation.
//
// Paths through the files: activations.go starts, finishes, reads and cancels; attempt.go has
// the steps of asynchronous activations; list.go reads pages of the indexes of the functions
// that functions.go finds; sweep.go finds lost ones; json.go encodes records, and result.go
// truncates results; logs.go is independent of the records.
package activations
