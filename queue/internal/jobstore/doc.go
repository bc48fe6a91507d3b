// Package jobstore reads and writes the records of jobs: their specs, their runs, the sets
// that index them by state, and the configuration and batches of their queues. Each change
// of a job is one script, which compares the job's stored run with the one that the caller
// read, or its epoch with that of the caller's lease, so that of two concurrent changes only one
// is made.
//
// # Keys
//
// Package storage builds the keys. The records of job j1 of tenant t_acme01 are
//
//	cs:job:t_acme01:j1:run         string  what changes at each step, see Run
//	cs:job:t_acme01:j1:spec        string  what a worker has to do, see EncodeSpec
//	cs:job:t_acme01:j1:meta        hash    details that few jobs have, see FieldCheckpoint
//	cs:job:t_acme01:j1:errors      list    the last 100 attempts that did not complete it, see attemptRecord
//	cs:job:t_acme01:j1:dependents  set     the jobs that wait for this one, see DependOn
//
// A job exists as long as its run does. Its queue, mail of namespace shop, lists it in one of
// the sorted sets cs:queue:t_acme01:shop:mail:STATE. The meaning of the score depends on the
// state: Score for pending jobs, which have one set for each priority; Run.At for all others.
// Two more sets have members in several states: expiry, by the time at which the jobs expire,
// and after, which marks ended jobs whose consequences are still to be handled and waiting
// jobs that may be released. Keys of a cluster have braces around the tenant.
//
// # Moves
//
// The sets of a job of normal priority that is made at 1000 (milliseconds), fails once, and
// completes. The score of a pending job is 2×2^51 + 1000×2^10 = 4503599628394496; only the
// cursor of a queue can raise it when the job is put back, see lua/include/cursor.lua.
//
// The word of the worker also has the time of the claim, as in w1@1000; it is left out here.
//
//	step                      run afterwards             member j1 leaves   and enters, with score
//	enqueue                   pending 0 0 1000 - -                          pending 4503599628394496
//	w1 claims it for 30 s     active 1 1 31000 - w1      pending            active 31000
//	heartbeat at 11000        active 1 1 41000 - w1                         active 41000
//	w1 fails it at 12000 *    retrying 1 1 22000 1f w1   active             retrying 22000
//	maintenance promotes it   pending 1 1 22000 1f w1    retrying           pending 4503599628394496
//	w2 claims it at 23000     active 2 2 53000 1f w2     pending            active 53000
//	w2 acks it at 24000       completed 2 2 24000 2a w2  active             completed 24000
//	purge after RetentionMS   none                       completed
//
// (*) with a backoff of 10 s; attempt 1 failed under epoch 1, hence 1f.
//
// A script that moves a job writes in this order: the entry in the set to enter, the marker in
// after, errors and details, the run, and then the removal from the set to leave. The run
// decides. If a crash interrupts the script, the job has at most one entry too many, and never
// none. For a claim that was interrupted,
//
//	when            run      pending  active  meaning
//	before the run  pending  j1       j1      pending; the entry in active is a stray
//	after the run   active   j1       j1      active; the entry in pending is a stray
//
// A reader of a set therefore compares each member with its run, and removes strays; see
// Partition, Drop and package repair.
//
// # Files
//
// A job is made by enqueue.go, extended by heartbeat.go, completed by complete.go, deleted by
// purge.go, and changed in all other ways by move.go, except for the claim, which is in package
// claim. run.go, spec.go and score.go define the stored forms, record.go and load.go read them, and
// list.go reads pages of them. summary.go and header.go read parts of jobs without their payloads.
package jobstore
