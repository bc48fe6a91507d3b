// Package documents is the document store: JSON documents of installs, in namespaces, with
// revisions, times to live, metadata, schemas, quotas and a feed of changes.
//
// It has two layers. A Repository reads and writes records: each write is one script, all
// or none, with the quota and the revisions checked inside it. A Service on top of it
// implements the operations of the REST API, the internal endpoint and cs.storage: it
// validates requests, checks values against schemas, seals cursors and limits rates.
package documents
