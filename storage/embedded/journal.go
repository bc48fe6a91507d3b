package embedded

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/codesous/sous/api"
)

// A journal file holds the writes since a snapshot, so that a killed process
// loses nothing. Each entry is its length and CRC-32 (4 bytes each, big endian)
// and its body: uvarints for the time in milliseconds and the number of
// arguments, and each argument behind its own length. The snapshot names the
// first journal that follows it; later ones follow in order of their number.
//
// SET k v one second after 1970 began is
//
//	00 00 00 0b              the body has 11 bytes
//	7f d7 74 43              and this CRC-32 (IEEE)
//	e8 07                    1000 ms
//	03                       3 arguments:
//	03 53 45 54  01 6b  01 76    "SET", "k", "v"
//
// A script is one entry, the EVAL or EVALSHA with its arguments. It does the same when it is
// run again, because scripts read no clock and no random numbers, and entries are in the order
// in which the commands ran.
const (
	journalPrefix = "store.journal." // followed by a decimal number
	journalHeader = 8                // bytes before the body
	// journalMaxBody bounds the length of an entry when a journal is read: a damaged length
	// must not allocate gigabytes.
	journalMaxBody = 64 << 20
)

// journal is the file to which writes are appended. Its callers hold the lock of standstill,
// so it needs none of its own.
type journal struct {
	number uint64
	file   journalFile
	size   int64 // bytes of whole entries, to which a partial one is truncated
	torn   bool  // the file ends within an entry that could not be removed
	// scripts are the texts of all scripts so far, by digest. A journal begins with them,
	// since later commands may name only the digest.
	scripts map[string]string
}

// journalFile is the part of an *os.File that a journal uses.
type journalFile interface {
	io.WriteCloser
	Truncate(size int64) error
}

func journalPath(dir string, number uint64) string {
	return filepath.Join(dir, journalPrefix+strconv.FormatUint(number, 10))
}

// next creates the journal that follows j, which stays open, and writes the known scripts to
// it. No command may run meanwhile. The file must not exist.
func (j *journal) next(dir string, now time.Time) (*journal, error) {
	f, err := os.OpenFile(journalPath(dir, j.number+1), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make journal: %w", err)
	}
	n := &journal{number: j.number + 1, file: f, scripts: j.scripts}
	for _, text := range j.scripts {
		if err := n.append([]string{"SCRIPT", "LOAD", text}, now); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}
	return n, nil
}

// append writes one command. The kernel has the entry when append returns, so it outlives
// this process. It is not synced: a power failure can lose it.
func (j *journal) append(args []string, now time.Time) error {
	j.learn(args)
	entry := make([]byte, journalHeader, 256)
	entry = binary.AppendUvarint(entry, uint64(now.UnixMilli()))
	entry = binary.AppendUvarint(entry, uint64(len(args)))
	for _, arg := range args {
		entry = binary.AppendUvarint(entry, uint64(len(arg)))
		entry = append(entry, arg...)
	}
	body := entry[journalHeader:]
	binary.BigEndian.PutUint32(entry, uint32(len(body)))
	binary.BigEndian.PutUint32(entry[4:], crc32.ChecksumIEEE(body))
	return j.write(entry)
}

// write appends an entry. After a failure, such as a full disk, it removes the partial
// entry, since entries behind it could not be read.
func (j *journal) write(entry []byte) error {
	if j.torn {
		return errors.New("write journal: an earlier write failed and left a partial entry")
	}
	n, err := j.file.Write(entry)
	if err == nil {
		j.size += int64(n)
		return nil
	}
	err = fmt.Errorf("write journal: %w", err)
	if n > 0 {
		truncated := j.file.Truncate(j.size)
		j.torn = truncated != nil
		err = errors.Join(err, truncated)
	}
	return err
}

// learn keeps the text of a script that is loaded.
func (j *journal) learn(args []string) {
	var text string
	switch {
	case strings.EqualFold(args[0], "EVAL") && len(args) > 1:
		text = args[1]
	case strings.EqualFold(args[0], "SCRIPT") && len(args) == 3 && strings.EqualFold(args[1], "LOAD"):
		text = args[2]
	default:
		return
	}
	digest := sha1.Sum([]byte(text)) // the argument of EVALSHA
	j.scripts[hex.EncodeToString(digest[:])] = text
}

// journals returns the numbers of the journals in dir, in order.
func journals(dir string) ([]uint64, error) {
	names, err := fs.Glob(os.DirFS(dir), journalPrefix+"*")
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		n, err := strconv.ParseUint(strings.TrimPrefix(name, journalPrefix), 10, 64)
		if err != nil {
			continue // not a journal
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers, nil
}

// removeJournals removes the journals before number, which a snapshot includes.
func removeJournals(dir string, number uint64) error {
	numbers, err := journals(dir)
	for _, n := range numbers {
		if n < number {
			err = errors.Join(err, os.Remove(journalPath(dir, n)))
		}
	}
	return err
}

// replay calls do with each command of a journal. A partial entry at the end of the file
// was being written when the process died, and had no answer yet; it is skipped. So are
// zeros up to the end, which a power failure leaves where a file had grown before its
// bytes arrived. Any other deviation is an error.
func replay(path string, do func(at time.Time, args []string)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	r := bufio.NewReader(f)
	for {
		var header [journalHeader]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return journalEnd(err)
		}
		size := binary.BigEndian.Uint32(header[:])
		if size == 0 {
			return zeroTail(path, r)
		}
		if size > journalMaxBody {
			return damagedJournal(path, errors.New("an entry is too long"))
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r, body); err != nil {
			return journalEnd(err)
		}
		if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(header[4:]) {
			return damagedJournal(path, errors.New("a checksum is wrong"))
		}
		at, args, err := journalEntry(body)
		if err != nil {
			return damagedJournal(path, err)
		}
		do(at, args)
	}
}

// zeroTail reads the rest of a journal, in which an entry of length 0 has begun. It returns nil
// if only zeros follow.
func zeroTail(path string, r *bufio.Reader) error {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return journalEnd(err)
		}
		if b != 0 {
			return damagedJournal(path, errors.New("an entry is empty"))
		}
	}
}

// journalEnd returns the error of a read that failed, nil where the file ended.
func journalEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return fmt.Errorf("read journal: %w", err)
}

func damagedJournal(path string, cause error) error {
	return api.Wrap(api.CodeInternal, cause,
		fmt.Sprintf("the journal %s cannot be read: restore it from a copy, or move it away to lose what it holds", path))
}

// journalEntry decodes the body of an entry.
func journalEntry(body []byte) (at time.Time, args []string, err error) {
	next := func() uint64 {
		v, n := binary.Uvarint(body)
		if n <= 0 {
			err = errors.New("an entry is malformed")
			return 0
		}
		body = body[n:]
		return v
	}
	at = time.UnixMilli(int64(next()))
	for count := next(); err == nil && count > 0; count-- {
		size := next()
		if err == nil && size > uint64(len(body)) {
			err = errors.New("an entry is malformed")
		}
		if err != nil {
			break
		}
		args = append(args, string(body[:size]))
		body = body[size:]
	}
	if err == nil && len(args) == 0 {
		err = errors.New("an entry is empty")
	}
	return at, args, err
}

// replayJournals repeats the writes since the snapshot that journal first follows, which
// was taken at from. It returns the number of the last journal and the time to which the keys
// have aged. Each command runs at the time at which it ran first, to expiryInterval: a key
// that had expired before a command has expired before its repetition. The connection that
// runs them discards the replies, errors included: a command that failed fails again.
func (e *Server) replayJournals(srv *server.Server, first uint64, from time.Time) (last uint64, at time.Time, err error) {
	numbers, err := journals(e.dir)
	if err != nil {
		return 0, from, fmt.Errorf("read journals: %w", err)
	}
	last, at = first, from
	defer e.redis.SetTime(time.Time{}) // the zero time is the present one
	peer := server.NewPeer(bufio.NewWriter(io.Discard))
	for _, n := range numbers {
		if n < first {
			continue
		}
		last = n
		err := replay(journalPath(e.dir, n), func(when time.Time, args []string) {
			// Expiry walks over all keys: it follows in steps.
			if gone := when.Sub(at); gone >= expiryInterval {
				e.redis.FastForward(gone)
				at = when
			}
			e.redis.SetTime(at) // for what names the time at which it expires
			e.journal.learn(args)
			srv.Dispatch(peer, args)
		})
		if err != nil {
			return last, at, err
		}
	}
	return last, at, nil
}
