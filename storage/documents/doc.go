// Package documents is the document store: JSON documents of installs, in namespaces, with
// revisions, times to live, metadata, schemas, quotas and a feed of changes.
//
// It has two layers. A Repository reads and writes records: each write is one script, all
// or none, with the quota and the revisions checked inside it. A Service on top of it
// implements the operations of the REST API, the internal endpoint and cs.storage: it
// validates requests, checks values against schemas, seals cursors and limits rates.
//
// # Path of a write
//
// Service.Put (write.go) validates the request and counts it against the rate (rate.go),
// newStep (steps.go) converts it to a Step, and Service.write checks the value against the
// cached schema. Repository.Write (repository_write.go) runs lua/document_write.lua. If the
// quota is exceeded, it first removes expired documents (repository_expire.go). If the
// namespace is new, it registers it and runs the script again. Then it notifies followers of
// the feed (repository_follow.go).
//
// # Layout
//
// A document is a field of the hash of its namespace; docs/storage.md lists the keys. The
// document "invoice" with the value {"n":1}, of install crm in its namespace settings, after
// two writes, as HGET cs:doc:t_acme01:crm:settings:records invoice returns it in one line:
//
//	{"revision":2,"created_at_ms":1767225600000,"expires_at_ms":0,"bytes":16,
//	 "updated_at_ms":1767225660000,"metadata_bytes":2,
//	 "metadata":{},"value":{"n":1}}
//
// The first two lines are its head. The fields have a fixed order, so that scripts read the
// head by a pattern, replace it, and cut off the value behind the metadata, without decoding
// JSON (lua/include/document_record.lua). bytes counts against the quotas: 7 of the key, 2 of
// the metadata, and 7 of the value. The bytes of a schema count, too (lua/document_schema.lua).
//
// # Interrupted writes
//
// One command decides on all documents of a write: an HSET, or the HDEL of a write without
// puts. A crash after each of the writes of a first put of "invoice" leaves:
//
//	HSET cs:doc:t_acme01:usage r b            the tenant's counts are too high
//	HSET cs:doc:t_acme01:crm:usage            the namespace's, too; the id 5 of a change is
//	     settings:r settings:b settings:c     used up, so the feed skips it
//	XADD …:settings:changes 5-0 op put …      the feed has a change that was not made
//	ZADD …:settings:index 0 invoice           the index has a key without a document
//	HSET …:settings:records invoice {…}       the document is written
//
// A document that expires also has its entries in the sets of expiring documents written
// before the HSET. A removal lowers the counts after its HDEL. So counts can be too high, but
// not too low, and each document is in the index. A repeated write completes the rest: it is
// a change with the next id. Readers skip keys without a document; the sweeper removes them
// and corrects the counts (repository_recount.go).
package documents
