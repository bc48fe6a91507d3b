// Package activations keeps the records of invocations, an index of them for each
// function, and their logs, all for a week.
//
// A Repository writes each record with at most one script or one pipeline: absent to
// running, running to terminal, or absent to terminal for an activation that ended before
// its running record was written. A record that still says running after its deadline is
// lost: its process died. Get, List and SweepFunction end the lost records that they read;
// SweepFunction visits every record, so that none stays lost.
package activations
