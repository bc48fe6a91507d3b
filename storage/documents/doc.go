// Package documents is the document storage: JSON documents of installs, in namespaces,
// with revisions, times to live, metadata, schemas, quotas and a feed of changes. Its
// Service is what the REST API, the internal endpoint and cs.storage do.
package documents
