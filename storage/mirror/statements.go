package mirror

import (
	"context"
	"database/sql"
	"strings"
)

// statements are those of the writer, prepared once.
type statements struct {
	position, note *sql.Stmt

	findJobs, insertJob, updateJob, deleteJob *sql.Stmt
	insertTag, insertTags, deleteTag          *sql.Stmt
	insertError, deleteErrors                 *sql.Stmt
	insertWords, deleteWords                  *sql.Stmt

	findActivations, insertActivation, updateActivation, deleteActivation *sql.Stmt
	insertActivationWords, deleteActivationWords                          *sql.Stmt
}

// texts returns the place of each statement with its text.
func (s *statements) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&s.position: `INSERT INTO positions VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position`,
		&s.note:     `INSERT INTO notes VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`,

		&s.findJobs: `SELECT j.id, j.row, j.run, j.doc FROM json_each(?2) AS e CROSS JOIN jobs AS j ON j.tenant = ?1 AND j.id = e.value`,
		&s.insertJob: `INSERT INTO jobs (row, tenant, id, namespace, queue, state, priority, attempt, worker_id, host, batch_id, chain_id, parent_id,
			activation_id, function, unique_key, run, dead_reason, error, created_ms, started_ms, due_ms, ended_ms, since_ms, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO NOTHING`,
		&s.updateJob: `UPDATE jobs SET tenant = ?2, id = ?3, namespace = ?4, queue = ?5, state = ?6, priority = ?7, attempt = ?8, worker_id = ?9, host = ?10,
			batch_id = ?11, chain_id = ?12, parent_id = ?13, activation_id = ?14, function = ?15, unique_key = ?16, run = ?17, dead_reason = ?18, error = ?19,
			created_ms = ?20, started_ms = ?21, due_ms = ?22, ended_ms = ?23, since_ms = ?24, doc = ?25 WHERE row = ?1`,
		&s.deleteJob:    `DELETE FROM jobs WHERE row = ?`,
		&s.insertTag:    `INSERT OR IGNORE INTO job_tags (row, tenant, key, value) VALUES (?, ?, ?, ?)`,
		&s.insertTags:   `INSERT OR IGNORE INTO job_tags (row, tenant, key, value) VALUES (?, ?, ?, ?)` + strings.Repeat(`, (?, ?, ?, ?)`, tagsAtOnce-1),
		&s.deleteTag:    `DELETE FROM job_tags WHERE row = ? AND tenant = ? AND key = ? AND value = ?`,
		&s.insertError:  `INSERT OR REPLACE INTO job_errors (row, attempt, error, at_ms) VALUES (?, ?, ?, ?)`,
		&s.deleteErrors: `DELETE FROM job_errors WHERE row = ?`,
		&s.insertWords:  `INSERT INTO job_words (rowid, tenant, id, queue, payload, tags, error, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		&s.deleteWords:  `DELETE FROM job_words WHERE rowid = ?`,

		&s.findActivations: `SELECT a.id, a.row, a.doc FROM json_each(?2) AS e CROSS JOIN activations AS a ON a.tenant = ?1 AND a.id = e.value`,
		&s.insertActivation: `INSERT INTO activations (row, tenant, id, namespace, function, version, status, trigger, job_id, request_id, error_type, error,
			start_ms, end_ms, duration_ms, cpu_ms, memory_peak, egress, doc)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row) DO NOTHING`,
		&s.updateActivation: `UPDATE activations SET tenant = ?2, id = ?3, namespace = ?4, function = ?5, version = ?6, status = ?7, trigger = ?8, job_id = ?9,
			request_id = ?10, error_type = ?11, error = ?12, start_ms = ?13, end_ms = ?14, duration_ms = ?15, cpu_ms = ?16, memory_peak = ?17, egress = ?18,
			doc = ?19 WHERE row = ?1`,
		&s.deleteActivation:      `DELETE FROM activations WHERE row = ?`,
		&s.insertActivationWords: `INSERT INTO activation_words (rowid, tenant, id, function, error, result) VALUES (?, ?, ?, ?, ?, ?)`,
		&s.deleteActivationWords: `DELETE FROM activation_words WHERE rowid = ?`,
	}
}

// prepare prepares the statements.
func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	s := &statements{}
	for place, text := range s.texts() {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			s.close()
			return nil, err
		}
		*place = stmt
	}
	return s, nil
}

// in returns the statements within tx.
func (s *statements) in(ctx context.Context, tx *sql.Tx) *statements {
	out := &statements{}
	of := s.places()
	for i, place := range out.places() {
		*place = tx.StmtContext(ctx, *of[i])
	}
	return out
}

// places returns the places of the statements, in one order.
func (s *statements) places() []**sql.Stmt {
	return []**sql.Stmt{
		&s.position, &s.note, &s.findJobs, &s.insertJob, &s.updateJob, &s.deleteJob, &s.insertTag, &s.insertTags, &s.deleteTag,
		&s.insertError, &s.deleteErrors, &s.insertWords, &s.deleteWords,
		&s.findActivations, &s.insertActivation, &s.updateActivation, &s.deleteActivation, &s.insertActivationWords, &s.deleteActivationWords,
	}
}

func (s *statements) close() {
	for _, place := range s.places() {
		if *place != nil {
			_ = (*place).Close() // the pool is closed next
		}
	}
}
