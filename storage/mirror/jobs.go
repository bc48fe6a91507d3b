package mirror

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/codesous/sous/api"
	"github.com/codesous/sous/api/search"
)

// storedJob is the row of a job before a write.
type storedJob struct {
	row int64
	run string
	doc []byte
}

// jobs writes the rows of jobs, and removes those of jobs that are gone.
func (w *write) jobs(jobs []Job, force bool) error {
	jobs = last(jobs, func(j *Job) [2]string { return [2]string{j.Tenant, j.ID} }, jobRow)
	tenants, of := byTenant(jobs, func(j *Job) string { return j.Tenant })
	stored := make([]*storedJob, len(jobs))
	for _, tenant := range tenants {
		if err := w.findJobs(tenant, jobs, of[tenant], stored); err != nil {
			return err
		}
	}
	for i := range jobs {
		if err := w.job(&jobs[i], stored[i], force); err != nil {
			return err
		}
	}
	return w.insertTags()
}

// tag is a row of job_tags.
type tag struct {
	row                int64
	tenant, key, value string
}

// tagsAtOnce is how many rows of job_tags one statement inserts.
const tagsAtOnce = 16

// insertTags inserts the tags of the batch in the order of their table, which touches each of its
// pages once.
func (w *write) insertTags() error {
	slices.SortFunc(w.tags, func(a, b tag) int {
		return cmp.Or(cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), cmp.Compare(a.row, b.row))
	})
	values := make([]any, 0, 4*tagsAtOnce)
	for tags := range slices.Chunk(w.tags, tagsAtOnce) {
		values = values[:0]
		for i := range tags {
			values = append(values, tags[i].row, tags[i].tenant, tags[i].key, tags[i].value)
		}
		if len(tags) == tagsAtOnce {
			if err := w.exec(w.s.insertTags, values...); err != nil {
				return err
			}
			continue
		}
		for ; len(values) > 0; values = values[4:] {
			if err := w.exec(w.s.insertTag, values[:4]...); err != nil {
				return err
			}
		}
	}
	return nil
}

func jobRow(j *Job) int64 {
	if j.View == nil {
		return 0
	}
	return RowOf(j.View.CreatedAtMS, j.ID)
}

// findJobs sets stored[i] to the row of jobs[i] for each of at, which are of one tenant.
func (w *write) findJobs(tenant string, jobs []Job, at []int, stored []*storedJob) error {
	ids, of := make([]string, len(at)), make(map[string]int, len(at))
	for k, i := range at {
		ids[k], of[jobs[i].ID] = jobs[i].ID, i
	}
	list, err := api.EncodeJSON(ids)
	if err != nil {
		return err
	}
	rows, err := w.s.findJobs.QueryContext(w.ctx, tenant, string(list))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has its error
	for rows.Next() {
		s, id := &storedJob{}, ""
		if err := rows.Scan(&id, &s.row, &s.run, &s.doc); err != nil {
			return err
		}
		stored[of[id]] = s
	}
	return rows.Err()
}

// job writes one job. A row of a job that was created at another time is one of an earlier job with
// its id.
func (w *write) job(j *Job, s *storedJob, force bool) error {
	if s != nil && j.View != nil && !force && s.run == j.Run && bytes.Equal(s.doc, j.Doc) {
		w.counts.Unchanged++
		return nil
	}
	var before *api.Job
	if s != nil {
		before = &api.Job{}
		if err := json.Unmarshal(s.doc, before); err != nil {
			return &damage{"a row has a damaged record: " + err.Error()}
		}
	}
	if s != nil && (j.View == nil || before.CreatedAtMS != j.View.CreatedAtMS) {
		if err := w.removeJob(j.Tenant, s.row, before); err != nil {
			return err
		}
		w.counts.Removed++
		s = nil
	}
	if j.View == nil {
		return nil
	}
	w.counts.Written++
	if s == nil {
		row, err := w.insert(w.s.insertJob, jobValues(RowOf(j.View.CreatedAtMS, j.ID), j))
		if err != nil {
			return err
		}
		w.rows.jobs++
		return w.jobParts(row, j)
	}
	return w.changeJob(j, s, before, force)
}

// changeJob writes a job that has a row.
func (w *write) changeJob(j *Job, s *storedJob, before *api.Job, force bool) error {
	if err := w.exec(w.s.updateJob, jobValues(s.row, j)...); err != nil {
		return err
	}
	if !force && wordsOf(j.Tenant, before) == wordsOf(j.Tenant, j.View) && len(before.Errors) == len(j.View.Errors) {
		return nil
	}
	if err := w.removeParts(j.Tenant, s.row, before); err != nil {
		return err
	}
	return w.jobParts(s.row, j)
}

// jobValues returns the values of the columns of a job.
func jobValues(row int64, j *Job) []any {
	v := j.View
	function := search.FunctionOf(v)
	return []any{
		row, j.Tenant, j.ID, v.Namespace, v.Queue, string(v.State), v.Priority.Rank(), v.Attempt, null(v.WorkerID), null(v.Host), null(v.BatchID), null(v.ChainID),
		null(v.ParentID), null(v.ActivationID), null(function), null(v.UniqueKey), j.Run, null(v.DeadReason), null(search.LastError(v)),
		v.CreatedAtMS, nullMS(v.StartedAtMS), nullMS(v.DueAtMS), nullMS(v.EndedAtMS), sinceOf(v), j.Doc,
	}
}

// sinceOf returns when a job entered its state. A job that waits for a time entered it at an unknown
// one, and has the time of its last attempt or of its creation.
func sinceOf(v *api.Job) int64 {
	for _, ms := range []int64{v.EndedAtMS, v.StateSinceMS, v.StartedAtMS} {
		if ms > 0 {
			return ms
		}
	}
	return v.CreatedAtMS
}

// jobParts writes what belongs to the row of a job in other tables.
func (w *write) jobParts(row int64, j *Job) error {
	for key, value := range j.View.Tags {
		w.tags = append(w.tags, tag{row, j.Tenant, key, value})
	}
	for i := range j.View.Errors {
		e := &j.View.Errors[i]
		if err := w.exec(w.s.insertError, row, e.Attempt, e.Error, e.AtMS); err != nil {
			return err
		}
	}
	t := wordsOf(j.Tenant, j.View)
	return w.exec(w.s.insertWords, row, t.tenant, t.id, t.queue, t.payload, t.tags, t.failure, t.result)
}

// removeJob removes the row of a job and all that belongs to it.
func (w *write) removeJob(tenant string, row int64, before *api.Job) error {
	if err := w.removeParts(tenant, row, before); err != nil {
		return err
	}
	w.rows.jobs--
	return w.exec(w.s.deleteJob, row)
}

func (w *write) removeParts(tenant string, row int64, before *api.Job) error {
	for key, value := range before.Tags {
		if err := w.exec(w.s.deleteTag, row, tenant, key, value); err != nil {
			return err
		}
	}
	if err := w.exec(w.s.deleteErrors, row); err != nil {
		return err
	}
	return w.exec(w.s.deleteWords, row)
}
