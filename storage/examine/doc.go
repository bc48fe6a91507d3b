// Package examine checks the servers of a store: which product and version they are,
// whether their settings keep what they accept, and whether their clocks agree with this
// process's. The requirements are those of docs/storage.md.
//
// Servers makes one Report; a ClockWatch repeats the comparison of the clocks. `sous serve`
// logs the report at its start and starts in any case; `sous doctor` prints it.
//
// Files: examine.go asks the servers (INFO, CONFIG GET, TIME), requirements.go checks the
// answers, report.go has the findings and merges those of several servers, and clock.go
// compares clocks. The check is free of input and output: a table of settings tests it.
package examine
